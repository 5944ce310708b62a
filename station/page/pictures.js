// Live pictures. A browser opens six connections to a host over HTTP/1.1, and an endless picture
// holds one, as the verdicts' stream does. So a camera that is shown alone gets an endless picture;
// several cameras get single pictures in turn, two requests at once.

const AT_ONCE = 2;
const PACE_MS = 200;
const CALM_PACE_MS = 1000;
const AFTER_ERROR_MS = 2000;
const GIVE_UP_MS = 6000;
const WATCH_MS = 1000;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Pictures {
  constructor() {
    this.cameras = [];
    this.round = 0;
    this.serial = 0;
  }

  /// Shows the pictures of these cameras, `{ name, image, onpicture(isShown) }`; none stops.
  show(cameras) {
    this.stop();
    this.cameras = cameras.map((camera) => ({ ...camera, due: 0, isAsked: false }));
    this.round += 1;
    if (cameras.length === 1 && !calm.matches) this.endless(this.cameras[0], this.round);
    else for (let i = 0; i < AT_ONCE; i += 1) this.inTurn(this.round);
  }

  stop() {
    this.round += 1;
    // Without its address an endless picture ends its request.
    for (const { image } of this.cameras) {
      image.onload = image.onerror = null;
      image.removeAttribute("src");
    }
    this.cameras = [];
  }

  endless(camera, round) {
    const { image } = camera;
    const isOver = () => round !== this.round;
    const fail = () => {
      clearInterval(watch);
      camera.onpicture(false);
      setTimeout(() => { if (!isOver()) this.endless(camera, round); }, AFTER_ERROR_MS);
    };
    // No event says that an endless picture broke off after its first part.
    const watch = setInterval(() => {
      if (isOver()) clearInterval(watch);
      else if (image.complete && !image.naturalWidth) fail();
    }, WATCH_MS);
    image.onload = () => camera.onpicture(true);
    image.onerror = fail;
    image.src = `live/${camera.name}?${this.serial += 1}`;
  }

  async inTurn(round) {
    while (round === this.round) {
      const now = performance.now();
      const next = this.cameras.filter((camera) => !camera.isAsked && camera.due <= now).sort((a, b) => a.due - b.due)[0];
      if (!next) {
        await new Promise((done) => setTimeout(done, 40));
        continue;
      }
      next.isAsked = true;
      next.due = now + (calm.matches ? CALM_PACE_MS : PACE_MS);
      const isShown = await this.single(next);
      next.isAsked = false;
      if (round !== this.round) return;
      if (!isShown) next.due = performance.now() + AFTER_ERROR_MS;
      next.onpicture(isShown);
    }
  }

  single({ name, image }) {
    return new Promise((done) => {
      const limit = setTimeout(() => done(false), GIVE_UP_MS);
      const end = (isShown) => () => { clearTimeout(limit); done(isShown); };
      image.onload = end(true);
      image.onerror = end(false);
      image.src = `live/${name}.jpg?${this.serial += 1}`;
    });
  }
}
