//! The program of the line station.

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use clap::{Parser, Subcommand};
use clinspect_station::{mqtt, station::Station, systemd};
use config::{
    file::{Config, recipe_topic},
    recipes::{Recipes, Switch},
    token::Token,
};
use machine::{
    answer::{Line, Server},
    error, info, listen, log,
    modbus::{self, Modbus},
    output,
};
use run::{source, state::show_on_page};
use sd_notify::NotifyState;
use setup::Setup;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Duration, MissedTickBehavior, interval},
};
use web::{self, Access};

mod client;
mod tried;

/// Interval between two checks whether the cameras have started.
const POLL: Duration = Duration::from_millis(50);

/// Exit code if the station cannot run; a file with mistakes exits with 1.
const CANNOT_RUN: u8 = 2;

/// Inspects the cameras of a line: runs and supervises their pipelines, serves the line's page and
/// publishes the results.
///
/// SIGHUP reads FILE again; SIGTERM and SIGINT stop the cameras in order.
#[derive(Parser)]
#[command(
    name = "clinspect-station",
    version,
    args_conflicts_with_subcommands = true
)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Checks FILE, prints each mistake as FILE:LINE:COLUMN, and exits with 1 if there is one
    #[arg(long)]
    check: bool,
    /// The configuration
    #[arg(value_name = "FILE", default_value = "/etc/clinspect-station.toml")]
    file: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the recipes of the running station, or switches all its cameras to one
    Recipe(client::Args),
    /// Judges frames in a folder with a recipe, and exits with 1 if it judges one wrong that was judged right before
    Try(tried::Args),
    /// Sets the outputs of a station that has ended to rest, and exits with 1 if one may still be active
    Rest(RestArgs),
}

#[derive(clap::Args)]
struct RestArgs {
    /// The configuration
    #[arg(value_name = "FILE", default_value = "/etc/clinspect-station.toml")]
    file: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match &args.command {
        Some(Command::Recipe(args)) => return client::run(args),
        Some(Command::Try(args)) => return tried::run(args),
        Some(Command::Rest(args)) => return rest(args),
        None => {}
    }
    let config = match read(&args) {
        Ok(Some(config)) => config,
        Ok(None) => return ExitCode::FAILURE,
        Err(why) => {
            error!("{why:#}");
            return CANNOT_RUN.into();
        }
    };
    if args.check && !check_recipes(&config) {
        return ExitCode::FAILURE;
    }
    if args.check {
        print(format_args!(
            "{}: no mistake, {} cameras",
            args.file.display(),
            config.cameras.len()
        ));
        return ExitCode::SUCCESS;
    }
    match run(config, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            error!("{why:#}");
            CANNOT_RUN.into()
        }
    }
}

/// The configuration; `None` if the file has mistakes, which are printed.
fn read(args: &Args) -> anyhow::Result<Option<Config>> {
    start_gstreamer()?;
    let read = if args.check {
        Config::check(&args.file)
    } else {
        Config::read_at_start(&args.file).map(|config| (config, Vec::new()))
    };
    match read {
        Ok((config, notes)) => {
            for note in notes {
                print(format_args!(
                    "{}:{}:{}: note: {}",
                    args.file.display(),
                    note.line,
                    note.column,
                    note.text
                ));
            }
            Ok(Some(config))
        }
        Err(mistakes) => {
            for mistake in mistakes {
                error_or_print(args, &format!("{}:{mistake}", args.file.display()));
            }
            Ok(None)
        }
    }
}

fn start_gstreamer() -> anyhow::Result<()> {
    gst::init().context("GStreamer does not start")?;
    gstclinspect::register_static()?;
    gstinspectoverlay::register_static()?;
    gstinspectpublish::register_static()?;
    source::register()?;
    Ok(())
}

/// Checks every recipe of the folder, and prints the mistakes. Returns whether there is none.
fn check_recipes(config: &Config) -> bool {
    let Some(folder) = config.recipes.as_ref().filter(|folder| folder.is_dir()) else {
        return true;
    };
    let mistakes = Recipes::check(folder, &config.cameras);
    for mistake in &mistakes {
        print(format_args!("{mistake}"));
    }
    mistakes.is_empty()
}

/// Sets every output of the file to rest.
fn rest(args: &RestArgs) -> ExitCode {
    let config = start_gstreamer().map(|()| Config::read_at_start(&args.file));
    let config = match config {
        Ok(Ok(config)) => config,
        Ok(Err(mistakes)) => {
            for mistake in mistakes {
                error!("{}:{mistake}", args.file.display());
            }
            return CANNOT_RUN.into();
        }
        Err(why) => {
            error!("{why:#}");
            return CANNOT_RUN.into();
        }
    };
    let mut code = ExitCode::SUCCESS;
    for (camera, rests) in output::rest(&config.cameras) {
        match rests {
            Ok(()) => info!("camera {camera}: the output is at rest"),
            Err(why) => {
                error!("camera {camera}: the output may still be active: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Prints a line. The exit code says the result too, so a reader that has left, as `head` does, is no failure.
fn print(text: fmt::Arguments<'_>) {
    match writeln!(io::stdout(), "{text}") {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => {
            error!("standard output cannot be written: {why}");
        }
        _ => {}
    }
}

/// Mistakes are the output of `--check`; otherwise they are log lines.
fn error_or_print(args: &Args, text: &str) {
    if args.check {
        print(format_args!("{text}"));
    } else {
        error!("{text}");
    }
}

fn run(config: Config, args: &Args) -> anyhow::Result<()> {
    let _log = log::Writer::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One may wait for a slow disk while the others answer a PLC.
        .worker_threads(4)
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve(config, args));
    // A request that hangs must not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn serve(config: Config, args: &Args) -> anyhow::Result<()> {
    let mut reload = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token_file = config.token_file.clone();
    let token = token_file.as_deref().map(Token::read).transpose()?;
    let token = token.map(Arc::new);
    let access = Access {
        token: token.clone(),
        write: config.allow_writing,
    };
    let (recipes, mut switches) = match config.recipes.clone() {
        Some(folder) => {
            let opened = Recipes::open(folder.clone(), config.cameras.clone());
            let (recipes, switches) = opened.with_context(|| {
                format!(
                    "the folder of the recipes {} cannot be used; let the station read and write there",
                    folder.display()
                )
            })?;
            (Some(recipes), Some(switches))
        }
        None => (None, None),
    };
    let (broker, frames) = (config.mqtt.clone(), config.frames.clone());
    let (line, listen) = (Line::new()?, config.listen);
    // It must take the line's answers before the first camera starts.
    let modbus = config.modbus.clone().map(|settings| {
        let cameras = config.cameras.iter().map(|camera| camera.name.clone());
        let recipes = recipes
            .clone()
            .map(|recipes| recipes as Arc<dyn modbus::Recipes>);
        Modbus::new(settings, cameras, &line, recipes)
    });
    let station = Station::start(config, recipes.clone(), line.clone())?;
    if let Some(modbus) = &modbus {
        let (modbus, cameras) = (modbus.clone(), station.cameras());
        let all = cameras.clone();
        let find = move |name: &str| {
            let cameras = all.borrow();
            let found = cameras.iter().find(|camera| camera.name == name);
            found.map(|camera| camera.clone() as Arc<dyn modbus::Camera>)
        };
        tokio::spawn(async move {
            modbus
                .serve(Box::new(find), |text| show_on_page(&cameras, text))
                .await;
        });
    }
    if let (Some(settings), Some(recipes)) = (broker, &recipes) {
        let topic = recipe_topic(&settings).map_err(anyhow::Error::msg)?;
        tokio::spawn(mqtt::serve(topic, recipes.clone()));
    }
    let cameras = station.cameras();
    let of_file = |recipes| Setup::new(args.file.clone(), frames, recipes, cameras.clone());
    let setup = recipes.map(of_file).map(Arc::new);
    let mut page = std::pin::pin!(async {
        let cameras = station.cameras();
        let listener = listen::bind(Server::Page, listen, &line, &|text: &str| {
            show_on_page(&cameras, text)
        })
        .await;
        web::serve(listener, cameras, access, setup, modbus).await
    });

    let mut ready = interval(POLL);
    let mut is_ready = false;
    let watchdog = systemd::watchdog_interval();
    let mut alive = interval(watchdog.unwrap_or(Duration::from_secs(3600)));
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            served = &mut page => {
                served.context("the page cannot be served")?;
                break;
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = reload.recv() => {
                systemd::reloading();
                if let (Some(token), Some(file)) = (&token, &token_file)
                    && let Err(why) = token.read_again(file)
                {
                    error!("token-file: {why:#}; the token stays as it was");
                }
                let (station, file) = (station.clone(), args.file.clone());
                tokio::spawn(async move {
                    station.reload(&file).await;
                    systemd::notify(&[NotifyState::Ready]);
                });
            }
            Some(wanted) = next(&mut switches) => {
                tokio::spawn(station.clone().switch(wanted));
            }
            _ = ready.tick(), if !is_ready => {
                if station.is_ready() {
                    is_ready = true;
                    systemd::notify(&[NotifyState::Ready]);
                }
            }
            _ = alive.tick(), if watchdog.is_some() => {
                let stuck = station.stuck();
                if stuck.is_empty() {
                    systemd::notify(&[NotifyState::Watchdog]);
                } else {
                    error!("a camera's supervisor does not answer: {}", stuck.join(", "));
                }
            }
        }
    }
    info!("stopping");
    systemd::notify(&[NotifyState::Stopping]);
    tokio::task::block_in_place(|| station.stop());
    Ok(())
}

/// The next switch that somebody wants; never, without recipes.
async fn next(switches: &mut Option<mpsc::Receiver<Switch>>) -> Option<Switch> {
    match switches {
        Some(switches) => switches.recv().await,
        None => std::future::pending().await,
    }
}
