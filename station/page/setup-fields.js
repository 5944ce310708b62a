// Fields of the set-up: each has a label, and its mistake beside it.

import { make, say } from "./dom.js";

let serial = 0;

/// A field; `key` is the setting whose mistakes it shows.
class Field {
  constructor({ label, hint, key }) {
    this.key = key;
    this.id = `field-${serial += 1}`;
    this.error = make("p", { class: "error", id: `${this.id}-error` });
    this.hint = hint ? make("p", { class: "hint", id: `${this.id}-hint` }, hint) : null;
    this.label = make("label", { for: this.id }, label);
    this.described = `${this.id}-error${hint ? ` ${this.id}-hint` : ""}`;
    this.element = make("div", { class: "field" });
  }

  /// Shows its own mistake; says whether there is one.
  showMistakes(mistakes) {
    const mine = mistakes.find(({ key }) => key === this.key || key.split(".").at(-1) === this.key);
    say(this.error, mine?.text ?? "");
    this.input.setAttribute("aria-invalid", Boolean(mine));
    return mine;
  }
}

/// A number with a slider. A wide range has a logarithmic slider.
export class NumberField extends Field {
  constructor({ unit, least, most, step = 1, onchange, ...rest }) {
    super({ ...rest, label: unit ? `${rest.label}, ${unit}` : rest.label });
    this.step = step;
    this.onchange = onchange;
    this.slider = make("input", { type: "range", "aria-label": `${rest.label}, slider`, min: 0, max: 1000, step: 1 });
    this.input = make("input", { type: "number", id: this.id, step: "any", inputmode: "decimal", "aria-describedby": this.described });
    this.slider.addEventListener("input", () => this.take(this.fromSlider(Number(this.slider.value)), this.slider));
    this.input.addEventListener("input", () => {
      const value = this.input.valueAsNumber;
      if (Number.isFinite(value)) this.take(value, this.input);
    });
    this.input.addEventListener("blur", () => this.set(this.value));
    this.element.append(this.label, make("div", { class: "slider" }, this.slider, this.input), ...[this.hint, this.error].filter(Boolean));
    this.range(least, most);
  }

  setLabel(label) {
    say(this.label, label);
    this.slider.setAttribute("aria-label", `${label}, slider`);
  }

  range(least, most) {
    if (this.least === least && this.most === most) return;
    this.least = least;
    this.most = most;
    this.isWide = least > 0 && most / least > 200;
    this.input.min = least;
    this.input.max = most;
    if (this.value != null) this.slider.value = this.toSlider(this.value);
  }

  toSlider(value) {
    const { least, most } = this;
    const share = this.isWide ? Math.log(Math.max(value, least) / least) / Math.log(most / least) : (value - least) / (most - least);
    return Math.round(1000 * Math.min(1, Math.max(0, share)));
  }

  fromSlider(place) {
    const { least, most, step } = this;
    const share = place / 1000;
    const value = this.isWide ? least * (most / least) ** share : least + share * (most - least);
    return Math.min(most, Math.max(least, this.round(Math.round(value / step) * step)));
  }

  round(value) {
    return Number(value.toFixed(this.step < 1 ? 3 : 0));
  }

  take(value, from) {
    this.value = value;
    if (from !== this.slider) this.slider.value = this.toSlider(value);
    if (from !== this.input) this.input.value = value;
    this.onchange?.(value);
  }

  /// Shows a value from elsewhere; not while someone types.
  set(value) {
    this.value = value;
    if (value == null) return;
    if (document.activeElement !== this.input) this.input.value = this.round(value);
    if (document.activeElement !== this.slider) this.slider.value = this.toSlider(value);
  }
}

export class TextField extends Field {
  constructor({ onchange, isLong, ...rest }) {
    super(rest);
    const attributes = { id: this.id, "aria-describedby": this.described, spellcheck: "false", autocomplete: "off" };
    this.input = isLong ? make("textarea", { ...attributes, rows: 3 }) : make("input", { ...attributes, type: "text", maxlength: 64 });
    this.input.addEventListener("input", () => onchange?.(this.input.value));
    this.element.append(this.label, this.input, ...[this.hint, this.error].filter(Boolean));
  }

  set(value) {
    if (document.activeElement !== this.input && this.input.value !== value) this.input.value = value ?? "";
  }
}

export class ChoiceField extends Field {
  constructor({ onchange, ...rest }) {
    super(rest);
    this.input = make("select", { id: this.id, "aria-describedby": this.described, onchange: () => onchange(this.input.value) });
    this.element.append(this.label, this.input, ...[this.hint, this.error].filter(Boolean));
  }

  /// `choices`: pairs of value and text.
  offer(choices, value) {
    const text = JSON.stringify(choices);
    if (text !== this.choices) {
      this.choices = text;
      this.input.replaceChildren(...choices.map(([of, name]) => make("option", { value: of }, name)));
    }
    if (document.activeElement !== this.input) this.input.value = value ?? "";
  }
}

/// Radio buttons with a line of explanation each.
export class RadioField extends Field {
  constructor({ onchange, ...rest }) {
    super(rest);
    this.onchange = onchange;
    this.input = make("fieldset", { class: "choices", "aria-describedby": this.error.id }, make("legend", {}, rest.label));
    this.element.append(this.input, ...[this.hint, this.error].filter(Boolean));
  }

  /// `choices`: `{ value, text, detail, badge }`.
  offer(choices, value) {
    const text = JSON.stringify(choices);
    if (text !== this.choices) {
      this.choices = text;
      const focused = document.activeElement?.name === this.id ? document.activeElement.value : null;
      const legend = this.input.firstChild;
      this.input.replaceChildren(legend, ...choices.map((of) => make("label", { class: "choice" },
        make("input", { type: "radio", name: this.id, value: of.value, onchange: () => this.onchange(of.value) }),
        make("span", {}, make("strong", {}, of.text), of.badge ? make("em", { class: "badge" }, of.badge) : null, make("span", { class: "muted" }, of.detail)))));
      if (focused != null) this.input.querySelector(`[value="${CSS.escape(focused)}"]`)?.focus();
    }
    for (const input of this.input.querySelectorAll("input")) input.checked = input.value === value;
  }
}

export const button = (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text);

export const section = (title, ...children) => make("section", {}, make("h3", {}, title), ...children);
