//! temporary
/// .
pub struct R;
impl R {
    /// .
    pub fn load(&self) -> Result<crate::trial::Kept, String> {
        Err(String::new())
    }
}
/// .
pub fn list(_: &std::path::Path, _: Option<&str>) -> Result<Vec<R>, String> {
    Ok(vec![])
}
