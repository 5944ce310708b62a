//! temporary
use std::sync::Arc;
/// temporary
pub fn advise(_frames: &[Arc<crate::frame::Frame>]) -> Result<serde_json::Value, String> {
    Err(String::new())
}
