//! What elements say, in the words of the page: people there have pieces and steps, and no signals and properties.

/// Parts of the elements' sentences, and what the page says instead.
const PARTS: [(&str, &str); 5] = [
    (" with the signal forget", ""),
    (
        "or inspect a natural texture with cltexture",
        "or choose Texture if no two repeats are alike",
    ),
    (
        "there is no model of these frames",
        "nothing was taught of this object yet",
    ),
    (
        "set train-frames and emit the signal train while good frames pass, or set location to the file of a model",
        "show good pieces in the step Teach",
    ),
    (
        "a frame of the training does not match",
        "a good piece does not match",
    ),
];

/// The sentence of an element for people at the page. `piece` gives the name of a frame by its number.
pub fn of_the_page(said: &str, piece: impl Fn(usize) -> Option<String>) -> String {
    let mut text = said.to_owned();
    for (of_element, of_page) in PARTS {
        text = text.replace(of_element, of_page);
    }
    const FRAME: &str = "frame ";
    let Some(at) = text.find(FRAME) else {
        return text;
    };
    let digits = &text[at + FRAME.len()..];
    let len = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    if let Some(name) = digits[..len].parse().ok().and_then(piece) {
        text.replace_range(at..at + FRAME.len() + len, &name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_become_pieces_and_signals_vanish() {
        let said = "a learned limit sees no defect: threshold marks differences from 74.5 grey levels on, but a defect of \
                    half the range of what is inspected differs by 68.7; take out frame 14 with the signal forget if it \
                    shows a defect, and check pitch, light and focus, or inspect a natural texture with cltexture";
        let piece = |at: usize| Some(format!("good piece {}", at + 1));
        let text = of_the_page(said, piece);
        assert!(
            text.contains("take out good piece 15 if it shows a defect, and check pitch, light and focus, or choose"),
            "{text}"
        );
        let said = "there is no model of these frames, which are 8x8; set train-frames and emit the signal train while \
                    good frames pass, or set location to the file of a model";
        let text = of_the_page(said, |_| None);
        assert_eq!(
            text,
            "nothing was taught of this object yet, which are 8x8; show good pieces in the step Teach"
        );
    }
}
