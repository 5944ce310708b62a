//! Values of the `device` property.

/// Which device a user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSelector {
    /// The first GPU, else the first CPU, else the first device of any kind.
    Auto,
    /// The n-th GPU, counted from 0 over all platforms.
    Gpu(usize),
    /// The n-th CPU device.
    Cpu(usize),
    /// The first device whose name contains this text, letter case ignored.
    Name(String),
}

impl DeviceSelector {
    /// Reads `auto`, `gpu`, `cpu`, `gpu:N`, `cpu:N`, or part of a device's name.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let (kind, index) = match lower.split_once(':') {
            Some((kind, index)) => (kind, index.parse().ok()),
            None => (lower.as_str(), Some(0)),
        };
        match (kind, index) {
            ("" | "auto", Some(0)) => Self::Auto,
            ("gpu", Some(n)) => Self::Gpu(n),
            ("cpu", Some(n)) => Self::Cpu(n),
            _ => Self::Name(text.to_owned()),
        }
    }

    /// Index of the selected device in `devices` (name, is GPU, is CPU).
    pub fn choose(&self, devices: &[(String, bool, bool)]) -> Option<usize> {
        let nth = |n: usize, wanted: fn(&(String, bool, bool)) -> bool| {
            devices
                .iter()
                .enumerate()
                .filter(|(_, d)| wanted(d))
                .map(|(i, _)| i)
                .nth(n)
        };
        match self {
            Self::Auto => nth(0, |d| d.1)
                .or_else(|| nth(0, |d| d.2))
                .or_else(|| nth(0, |_| true)),
            Self::Gpu(n) => nth(*n, |d| d.1),
            Self::Cpu(n) => nth(*n, |d| d.2),
            Self::Name(part) => {
                let part = part.to_lowercase();
                devices
                    .iter()
                    .position(|d| d.0.to_lowercase().contains(&part))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Vec<(String, bool, bool)> {
        vec![
            ("pthread-Xeon".into(), false, true),
            ("NVIDIA H200".into(), true, false),
            ("NVIDIA A2".into(), true, false),
        ]
    }

    #[test]
    fn selector_each_form_chooses_its_device() {
        let choose = |text: &str| DeviceSelector::parse(text).choose(&devices());
        assert_eq!(choose("auto"), Some(1));
        assert_eq!(choose(""), Some(1));
        assert_eq!(choose("gpu"), Some(1));
        assert_eq!(choose("gpu:1"), Some(2));
        assert_eq!(choose("GPU:1"), Some(2));
        assert_eq!(choose("gpu:2"), None);
        assert_eq!(choose("cpu"), Some(0));
        assert_eq!(choose("cpu:1"), None);
        assert_eq!(choose("h200"), Some(1));
        assert_eq!(choose("xeon"), Some(0));
        assert_eq!(choose("gpu:x"), None);
        assert_eq!(choose("radeon"), None);
    }

    #[test]
    fn selector_auto_without_a_gpu_takes_the_cpu() {
        let only_cpu = vec![("pthread".to_owned(), false, true)];
        assert_eq!(DeviceSelector::Auto.choose(&only_cpu), Some(0));
        assert_eq!(DeviceSelector::Auto.choose(&[]), None);
    }
}
