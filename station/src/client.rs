//! `clinspect-station recipe`: asks the running station.

use std::{
    fs,
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use axum::body::{Body, to_bytes};
use config::file::Config;
use hyper::{Method, Request, StatusCode, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};

/// Longest wait for the station's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// Largest answer, bytes.
const MOST_BYTES: usize = 16 << 20;

/// Lists the recipes of the running station, or switches all its cameras to one.
#[derive(clap::Args)]
pub struct Args {
    /// The recipe; without it the recipes are listed, and the one in force has a mark
    name: Option<String>,
    /// The configuration of the running station: its address and its token
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/clinspect-station.toml"
    )]
    config: PathBuf,
}

/// Prints the station's answer. The exit code says whether the station did what was asked.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => {
            // A reader that has left is no failure.
            let _ = writeln!(io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(io::stderr(), "{why:#}");
            ExitCode::FAILURE
        }
    }
}

fn answer(args: &Args) -> anyhow::Result<String> {
    let (listen, token_file) = Config::address(&args.config)
        .map_err(|why| anyhow::anyhow!("{}: {why}", args.config.display()))?;
    let token = token_file.map(|path| {
        let token = fs::read_to_string(&path);
        let token = token.with_context(|| {
            format!(
                "cannot read the token in {}; run this as root, or as a user who may read that file",
                path.display()
            )
        });
        token.map(|token| token.trim_ascii().to_owned())
    });
    let token = token.transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let asked = match &args.name {
            None => ask(listen, token, Method::GET, "/api/recipes", None),
            Some(name) => {
                let body = json!({ "name": name });
                ask(listen, token, Method::POST, "/api/recipe", Some(body))
            }
        };
        let answer = timeout(ANSWER_WITHIN, asked).await;
        let answer =
            answer.with_context(|| format!("the station at {listen} does not answer"))??;
        Ok(match &args.name {
            Some(name) => format!(
                "{name} is in force after {} ms",
                answer["milliseconds"].as_u64().unwrap_or_default()
            ),
            None => listed(&answer),
        })
    })
}

/// A line for each recipe; the one in force has a mark.
fn listed(answer: &Value) -> String {
    let recipes = answer["recipes"].as_array().map_or(&[][..], Vec::as_slice);
    if recipes.is_empty() {
        return "the station has no recipes".to_owned();
    }
    let active = answer["active"]["name"].as_str();
    let mut lines: Vec<String> = recipes
        .iter()
        .map(|recipe| {
            let name = recipe["name"].as_str().unwrap_or_default();
            let mark = if active == Some(name) { '*' } else { ' ' };
            let hash = recipe["hash"].as_str().unwrap_or_default();
            let mistakes = recipe["mistakes"].as_array().map_or(0, Vec::len);
            let mistakes = match mistakes {
                0 => String::new(),
                1 => "  1 mistake".to_owned(),
                many => format!("  {many} mistakes"),
            };
            let number = recipe["number"].as_u64();
            let number = number.map_or_else(String::new, |number| format!("  number {number}"));
            format!("{mark} {name}  {hash}{number}{mistakes}")
        })
        .collect();
    lines.extend(answer["problem"].as_str().map(str::to_owned));
    lines.join("\n")
}

/// The JSON that the station answers.
async fn ask(
    listen: SocketAddr,
    token: Option<String>,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> anyhow::Result<Value> {
    let address = reachable(listen);
    let stream = TcpStream::connect(address).await;
    let stream =
        stream.with_context(|| format!("no station answers at {address}; does it run?"))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(user) = nix::unistd::User::from_uid(nix::unistd::getuid())
        .ok()
        .flatten()
    {
        request = request.header(web::USER, user.name);
    }
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let answer = sender.send_request(request.body(body)?).await?;
    let status = answer.status();
    let bytes = to_bytes(Body::new(answer.into_body()), MOST_BYTES).await?;
    connection.abort();
    if status != StatusCode::OK {
        bail!("{}", String::from_utf8_lossy(&bytes).trim_ascii());
    }
    let answer = serde_json::from_slice(&bytes);
    ensure!(
        answer.is_ok(),
        "{address} is no clinspect-station: it answers no JSON"
    );
    Ok(answer?)
}

/// Where a station that listens there is reached from this PC.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
