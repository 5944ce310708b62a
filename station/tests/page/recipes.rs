//! Recipes on the page.

use std::{
    fs,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use clinspect_testkit::tools::Sandbox;
use config::recipes::{Action, Change, InForce, Recipes};

use crate::{
    browser::drive,
    fake::{Station, with_token},
};

/// A recipe of a camera that the station's file does not have.
fn recipe(keys: &str) -> String {
    format!("[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\npitch = {{ {keys} }}\n")
}

/// Puts a recipe in force, as the station does.
fn put_in_force(recipes: &Recipes, name: &str, who: &str) -> Result<Duration, String> {
    let hash = recipes.hash(name)?;
    let listed = recipes.list();
    let found = listed.iter().find(|of| of.name == name).expect("a recipe");
    assert!(found.mistakes.is_empty(), "the page lets choose {found:?}");
    let before = recipes.in_force().borrow().active.clone();
    let active = clinspect_results::report::RecipeId {
        name: name.to_owned(),
        hash: hash.clone(),
    };
    recipes.in_force().send_replace(InForce {
        active: Some(active),
        ..InForce::default()
    });
    recipes.record(Change {
        time: Change::now(),
        who: who.to_owned(),
        action: Action::Switch,
        from: before.map(|before| before.name),
        to: name.to_owned(),
        hash: Some(hash),
        milliseconds: 57,
        result: "ok".to_owned(),
    });
    Ok(Duration::from_millis(57))
}

#[test]
fn page_shows_the_recipe_and_switches_it() {
    gst::init().expect("GStreamer");
    gstclinspect::register_static().expect("the elements");
    let sandbox = Sandbox::new("page-recipes");
    let folder = sandbox.path().join("recipes");
    let (recipes, mut switches) = Recipes::open(folder.clone(), Vec::new()).expect("a folder");
    for (name, text) in [
        ("cloth", recipe("threshold = 12")),
        ("label", recipe("threshold = 9")),
        ("broken", recipe("treshold = 9")),
    ] {
        fs::write(folder.join(format!("{name}.toml")), text).expect("a recipe");
    }
    put_in_force(&recipes, "cloth", "start").expect("a recipe");
    let of_thread = recipes.clone();
    std::thread::spawn(move || {
        while let Some(wanted) = switches.blocking_recv() {
            let result = match wanted.name.as_str() {
                "label" => put_in_force(&of_thread, "label", &wanted.who),
                _ => Err("camera left: device lost; all cameras are as before".to_owned()),
            };
            let _ = wanted.answer.send(result);
        }
    });
    let access = with_token(true);
    let names = ["left", "right"];
    let station = Station::start_with("127.0.0.1:0", access, &names, Some(recipes.clone()));
    drive(
        "recipes.py",
        &station.url(""),
        std::time::Duration::from_secs(180),
        |wish| obey(wish, &recipes, &station),
    );
}

/// Does what `recipes.py` asks of the station.
fn obey(wish: &str, recipes: &Arc<Recipes>, station: &Station) {
    let problem = match wish {
        "break" => Some("No camera runs, because the recipe cannot be used.".to_owned()),
        "mend" => None,
        // Somebody saves over the recipe in force.
        "save" => {
            let hash = recipes.hash("label").ok();
            let text = recipe("threshold = 15");
            let saved = recipes.save("label", &text, &[], hash.as_deref(), "page 192.168.1.7");
            return drop(saved.expect("a save"));
        }
        "connect" => {
            let modbus = station.modbus.as_ref().expect("a server for PLCs");
            return modbus.numbers.connections.store(1, Relaxed);
        }
        other => return eprintln!("{other}"),
    };
    recipes
        .in_force()
        .send_modify(|state| state.problem = problem);
}
