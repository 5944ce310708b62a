//! temporary
/// temporary
pub struct Found {
    /// .
    pub id: String,
    /// .
    pub label: String,
    /// .
    pub detail: String,
    /// .
    pub source: String,
}
impl Found {
    /// .
    pub fn is_named(&self, name: &str) -> bool {
        self.id == name
    }
}
/// .
pub fn genicam() -> Result<Vec<Found>, String> {
    Ok(vec![])
}
/// .
pub fn v4l2() -> Vec<Found> {
    vec![]
}
/// .
pub fn folders(_: &std::path::Path) -> Vec<Found> {
    vec![]
}
