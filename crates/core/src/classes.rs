//! Classes of defects: rules over a defect's features, written as one string.

use std::{collections::HashSet, fmt};

/// The class of a defect for which no rule holds.
pub const OTHER: u16 = 0;
/// The class of a defect with pixels that are marked for want of a pattern.
pub const PATTERN_MISSING: u16 = u16::MAX;
/// Names of the classes that need no rule.
pub const OWN_NAMES: [(&str, u16); 2] = [("other", OTHER), ("pattern-missing", PATTERN_MISSING)];
/// Most rules; the other class numbers are [`OTHER`] and [`PATTERN_MISSING`].
const MOST_RULES: usize = 65_534;

/// The features of a defect; docs/semantics.md, "Classes", defines them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Features {
    /// Marked pixels.
    pub area: f64,
    /// Width of the box, px.
    pub width: f64,
    /// Height of the box, px.
    pub height: f64,
    /// Major axis, px.
    pub major: f64,
    /// Minor axis, px.
    pub minor: f64,
    /// Pixel sides along the boundary.
    pub boundary: f64,
    /// Mean difference, grey levels.
    pub mean: f64,
    /// Difference of largest magnitude, grey levels.
    pub peak: f64,
    /// 1 bright, -1 dark, 0 mixed.
    pub polarity: f64,
    /// The finest level that marks a pixel.
    pub level: f64,
}

type Feature = fn(&Features) -> f64;

/// The features that a condition may name.
const FEATURES: [(&str, Feature); 12] = [
    ("area", |f| f.area),
    ("width", |f| f.width),
    ("height", |f| f.height),
    ("major", |f| f.major),
    ("minor", |f| f.minor),
    ("elongation", |f| {
        if f.minor > 0.0 {
            f.major / f.minor
        } else {
            f64::INFINITY
        }
    }),
    ("fill", |f| f.area / (f.width * f.height)),
    ("boundary", |f| f.boundary),
    ("mean", |f| f.mean),
    ("peak", |f| f.peak),
    ("polarity", |f| f.polarity),
    ("level", |f| f.level),
];

type Operator = fn(&f64, &f64) -> bool;

/// The operators; an operator comes before its own beginning.
const OPERATORS: [(&str, Operator); 4] = [
    ("<=", |a, b| a <= b),
    (">=", |a, b| a >= b),
    ("<", |a, b| a < b),
    (">", |a, b| a > b),
];

/// A feature compared with a number. Feature and operator are indices of their tables.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Condition {
    feature: usize,
    operator: usize,
    number: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    name: String,
    conditions: Vec<Condition>,
}

/// The rules; the n-th one, counted from 1, gives class n.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Classes {
    rules: Vec<Rule>,
}

impl Classes {
    /// Reads `name: condition and condition ...; ...`, where a condition is
    /// `feature operator number`. An empty text has no rules.
    ///
    /// # Errors
    /// A sentence with the place and what was expected there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader {
            text,
            at: 0,
            rule: 0,
        };
        let mut rules: Vec<Rule> = Vec::new();
        let mut names = HashSet::new();
        while !reader.rest().is_empty() {
            reader.rule += 1;
            if rules.len() == MOST_RULES {
                return Err(reader.wrong("is one rule too many", "at most 65534 rules"));
            }
            let rule = reader.rule()?;
            if !names.insert(rule.name.clone()) {
                return Err(format!(
                    "rule {}: the name \"{}\" is taken by an earlier rule; give each class a name \
                     of its own, and join conditions of one class with \"and\"",
                    reader.rule, rule.name
                ));
            }
            rules.push(rule);
        }
        Ok(Self { rules })
    }

    /// The names of classes 1, 2, ...
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rules.iter().map(|rule| rule.name.as_str())
    }

    /// The number of the class of that name, if there is one.
    pub fn number(&self, name: &str) -> Option<u16> {
        let own = OWN_NAMES.into_iter().find(|(own, _)| *own == name);
        own.map(|(_, number)| number).or_else(|| {
            let index = self.names().position(|known| known == name)?;
            u16::try_from(index + 1).ok()
        })
    }

    /// The first class whose conditions all hold; [`OTHER`] if there is none.
    pub fn class_of(&self, features: &Features) -> u16 {
        let holds = |c: &Condition| {
            let (_, feature) = FEATURES[c.feature];
            let (_, operator) = OPERATORS[c.operator];
            operator(&feature(features), &c.number)
        };
        let index = (self.rules.iter()).position(|rule| rule.conditions.iter().all(holds));
        // `parse` reads at most MOST_RULES.
        index.map_or(OTHER, |index| (index + 1) as u16)
    }
}

/// The rules as [`Classes::parse`] reads them.
impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, rule) in self.rules.iter().enumerate() {
            let before = if n > 0 { "; " } else { "" };
            write!(f, "{before}{}: ", rule.name)?;
            for (n, c) in rule.conditions.iter().enumerate() {
                let before = if n > 0 { " and " } else { "" };
                let (feature, operator) = (FEATURES[c.feature].0, OPERATORS[c.operator].0);
                write!(f, "{before}{feature} {operator} {}", c.number)?;
            }
        }
        Ok(())
    }
}

/// The names of a table, for a sentence.
fn listed<T>(table: &[(&str, T)]) -> String {
    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

struct Reader<'a> {
    text: &'a str,
    /// Byte of the text that is read next.
    at: usize,
    /// Number of the rule, from 1.
    rule: usize,
}

impl<'a> Reader<'a> {
    /// The text from the next character on that is no space.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    /// Takes the characters that belong to a word; may be empty.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.rest().starts_with(mark);
        self.at += if found { mark.len() } else { 0 };
        found
    }

    /// A sentence about the word that is read next.
    fn wrong(&mut self, problem: &str, expected: &str) -> String {
        let rest = self.rest();
        let len = rest
            .find(|c: char| c.is_whitespace() || c == ';')
            .unwrap_or(rest.len())
            .min(rest.char_indices().nth(40).map_or(rest.len(), |(at, _)| at));
        let found = match &rest[..len] {
            "" => "the end of the rule".to_owned(),
            word => format!("\"{word}\""),
        };
        let column = self.text[..self.at].chars().count() + 1;
        format!(
            "rule {}, column {column}: {found} {problem}; expected {expected}",
            self.rule
        )
    }

    fn rule(&mut self) -> Result<Rule, String> {
        let name = self.name()?;
        if !self.take(":") {
            return Err(self.wrong("follows the name", "a colon"));
        }
        let mut conditions = vec![self.condition()?];
        while !self.rest().is_empty() && !self.take(";") {
            let start = self.at;
            if self.word(char::is_alphanumeric) != "and" {
                self.at = start;
                return Err(self.wrong("follows a condition", "\"and\" or a semicolon"));
            }
            conditions.push(self.condition()?);
        }
        Ok(Rule { name, conditions })
    }

    fn name(&mut self) -> Result<String, String> {
        const EXPECTED: &str = "a class name of letters, digits, - and _";
        self.rest();
        let start = self.at;
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let next = self.text[self.at..].chars().next();
        let is_whole = next.is_none_or(|c| c.is_whitespace() || c == ':' || c == ';');
        let problem = if name.is_empty() || !is_whole {
            "is no class name"
        } else if OWN_NAMES.iter().any(|(own, _)| *own == name) {
            "is the name of a class that needs no rule"
        } else {
            return Ok(name.to_owned());
        };
        self.at = start;
        Err(self.wrong(problem, EXPECTED))
    }

    fn condition(&mut self) -> Result<Condition, String> {
        self.rest();
        let start = self.at;
        let word = self.word(|c| c.is_alphanumeric() || c == '-' || c == '_');
        let Some(feature) = FEATURES.iter().position(|(name, _)| *name == word) else {
            self.at = start;
            return Err(self.wrong("is no feature", &format!("one of {}", listed(&FEATURES))));
        };
        let Some(operator) = OPERATORS.iter().position(|(name, _)| self.take(name)) else {
            return Err(self.wrong("is no operator", "one of <, <=, >, >="));
        };
        self.rest();
        let start = self.at;
        let word = self.word(|c| !c.is_whitespace() && c != ';');
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Condition {
                feature,
                operator,
                number,
            }),
            _ => {
                self.at = start;
                Err(self.wrong("is no number", "a number such as 12.5"))
            }
        }
    }
}
