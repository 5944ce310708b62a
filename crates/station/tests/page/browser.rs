//! The page in chromium, driven by `browser.py`.
