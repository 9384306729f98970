//! A part of the spool leaves for a host, and what the host made of it arrives.

use super::tar;
use crate::lanes::Lanes;
use crate::seal::named_hash;
use crate::spool::{Attempt, Avoided, HostName, Owner, Spool, said_at};
use crate::whole_file::{failed, read_json, remove, sha256};
use deltabench_model::problem::Problem;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What of an attempt arrives beside its sealed file, and may be newer than what is here.
const ENDS: [&str; 2] = ["beat.json", "end.json"];
/// Directories of the spool with what is known of hosts.
const OF_HOSTS: [&str; 2] = ["avoid", "admitted"];
/// What ends the list of hashes.
const LIST_ENDS: &str = "--\n";

/// Writes the part of a spool that a host needs.
///
/// Errors: a directory that cannot be written.
pub(super) fn part((spool, lanes): (&Spool, &Lanes), to: &Path) -> Result<(), Problem> {
    let fail = |error: io::Error| failed("write", to, &error);
    fs::create_dir_all(to).map_err(fail)?;
    fs::copy(spool.lanes_file(), to.join("lanes.json")).map_err(fail)?;
    for place in OF_HOSTS.into_iter().chain(["taken"]) {
        copy_new(&spool.root().join(place), &to.join(place), |_| true).map_err(fail)?;
    }
    for unit in &lanes.units {
        let from = spool.unit_directory(unit.unit);
        let unit_to = to.join(from.file_name().unwrap_or_default());
        fs::create_dir_all(&unit_to).map_err(fail)?;
        if from.join("again").exists() {
            fs::write(unit_to.join("again"), b"").map_err(fail)?;
        }
        for attempt in spool.attempts(unit.unit) {
            let name = attempt.directory().file_name().unwrap_or_default();
            part_of(&attempt, &unit_to.join(name)).map_err(fail)?;
        }
    }
    Ok(())
}

/// Of an attempt: who made it, how it ended, and that it is complete. Its sealed file is not needed there.
fn part_of(attempt: &Attempt, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in ["owner.json", "end.json"] {
        let from = attempt.directory().join(name);
        if from.exists() {
            fs::copy(from, to.join(name))?;
        }
    }
    for hash in attempt.hashes() {
        fs::write(to.join(format!("gathered-{hash}")), b"")?;
    }
    Ok(())
}

/// Takes what has arrived from a node into the spool; returns how many sealed files are new.
///
/// Errors: something arrived damaged or cut off: nothing of it was taken.
pub(super) fn take(
    (spool, lanes): (&Spool, &Lanes),
    node: &str,
    arriving: &Path,
) -> Result<u32, Problem> {
    let Some(sums) = unpacked(&arriving.join("parcel"), arriving, node)? else {
        return Ok(0);
    };
    let part = arriving.join("x").join(&lanes.execution);
    check(&sums, &part, arriving, node)?;
    let fail = |error: io::Error| failed("write", spool.root(), &error);
    take_hosts(spool, &part, node).map_err(fail)?;
    // Files of two hosts may have one name: an element that was put back went elsewhere.
    let logs = fs::read_dir(arriving.join("log"))
        .into_iter()
        .flatten()
        .flatten();
    for log in logs {
        let name = format!(
            "{}-{}",
            node.replace('/', "-"),
            log.file_name().to_string_lossy()
        );
        fs::copy(log.path(), spool.log_directory().join(name)).map_err(fail)?;
    }
    let mut taken = 0;
    let there = Spool::at(&part);
    for unit in &lanes.units {
        for attempt in there.attempts(unit.unit) {
            let owner = attempt.owner();
            if let Some(owner) = owner.filter(|owner| owner.host.node == node) {
                taken += take_attempt(spool, &attempt, &owner)?;
            }
        }
    }
    Ok(taken)
}

/// Takes what a node says of itself. The rest of its part came from here: somebody may have undone it since.
fn take_hosts(spool: &Spool, part: &Path, node: &str) -> io::Result<()> {
    let is_new = |file: &Path| {
        let host = read_json::<Avoided>(file).map(|avoided| avoided.host);
        let host = host.filter(|host| host.node == node);
        host.is_some_and(|host| said_at(file) > spool.admitted_since(&host))
    };
    let is_own = |file: &Path| read_json::<HostName>(file).is_some_and(|host| host.node == node);
    let [avoid, admitted] = OF_HOSTS;
    copy_new(&part.join(avoid), &spool.root().join(avoid), is_new)?;
    copy_new(&part.join(admitted), &spool.root().join(admitted), is_own)
}

/// Unpacks an archive behind its list of hashes; `None` if the host has nothing.
fn unpacked(
    parcel: &Path,
    into: &Path,
    node: &str,
) -> Result<Option<BTreeMap<String, String>>, Problem> {
    let cut_off = || {
        Problem::new(format!("what {node} sent is cut off"))
            .hint("nothing of it was taken; give the command again")
    };
    let read = || -> io::Result<(BTreeMap<String, String>, bool, File)> {
        let mut lines = BufReader::new(File::open(parcel)?);
        let (mut sums, mut line, mut at) = (BTreeMap::new(), String::new(), 0_u64);
        while lines.read_line(&mut line)? > 0 {
            at = at.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
            if line == LIST_ENDS {
                let mut file = lines.into_inner();
                file.seek(SeekFrom::Start(at))?;
                return Ok((sums, true, file));
            }
            if let Some((hash, path)) = line.trim_end().split_once("  ") {
                sums.insert(path.to_owned(), hash.to_owned());
            }
            line.clear();
        }
        Ok((sums, false, lines.into_inner()))
    };
    let length = fs::metadata(parcel).map_or(0, |data| data.len());
    if length == 0 {
        return Ok(None);
    }
    let (sums, is_whole, file) = read().map_err(|error| failed("read", parcel, &error))?;
    if !is_whole {
        return Err(cut_off());
    }
    let mut command = Command::new("tar");
    command
        .arg("-C")
        .arg(into)
        .args(["--no-same-owner", "-xf", "-"]);
    match tar(command.stdin(Stdio::from(file))) {
        Ok(()) => Ok(Some(sums)),
        Err(problem) => Err(cut_off().detail(problem.detail.unwrap_or_default())),
    }
}

/// Each sealed file has here the hash that it has there. One that is not what its name says is damaged there:
/// gathering names it, and resume has it measured again.
fn check(
    sums: &BTreeMap<String, String>,
    part: &Path,
    arriving: &Path,
    node: &str,
) -> Result<(), Problem> {
    for sealed in sealed_below(part) {
        let path = sealed.strip_prefix(arriving).unwrap_or(&sealed);
        let path = path.to_string_lossy();
        if sums.get(path.as_ref()) != Some(&sha256(&sealed)?) {
            return Err(Problem::new(format!("{path} of {node} arrived damaged"))
                .detail("its hash here is not its hash there")
                .hint("nothing was taken; give the command again"));
        }
    }
    Ok(())
}

fn sealed_below(part: &Path) -> Vec<PathBuf> {
    let units = fs::read_dir(part).into_iter().flatten().flatten();
    let attempts = units.flat_map(|unit| fs::read_dir(unit.path()).into_iter().flatten().flatten());
    let files = attempts.flat_map(|one| fs::read_dir(one.path()).into_iter().flatten().flatten());
    let paths = files.map(|file| file.path());
    paths.filter(|path| named_hash(path).is_some()).collect()
}

/// Takes an attempt of a host under the number that it has here, or the next one. Each host numbers what it
/// sees, so it is its owner that tells it from others.
fn take_attempt(spool: &Spool, there: &Attempt, owner: &Owner) -> Result<u32, Problem> {
    let all = spool.attempts(there.unit);
    let known = all
        .into_iter()
        .find(|one| one.owner().as_ref() == Some(owner));
    let here = match known {
        Some(here) => here,
        None => spool.claim(there.unit, owner)?,
    };
    let mut taken = 0;
    // An end without its file would be a unit that has lost its measurements.
    for sealed in there.sealed() {
        let to = here
            .directory()
            .join(sealed.file_name().unwrap_or_default());
        let is_here =
            named_hash(&sealed).is_some_and(|hash| here.hashes().contains(&hash.to_owned()));
        if !is_here {
            moved(&sealed, &to)?;
            taken += 1;
        }
    }
    for name in ENDS {
        let (from, to) = (there.directory().join(name), here.directory().join(name));
        if read_json::<serde_json::Value>(&from).is_some() {
            moved(&from, &to)?;
        }
    }
    Ok(taken)
}

/// Durable before it has its name.
fn moved(from: &Path, to: &Path) -> Result<(), Problem> {
    let done = || -> io::Result<()> {
        File::open(from)?.sync_all()?;
        fs::rename(from, to)?;
        crate::whole_file::sync_directory_of(to)
    };
    done().map_err(|error| failed("write", to, &error))
}

/// Copies the wanted files of a directory that are not there yet. Without the directory there are none.
fn copy_new(from: &Path, to: &Path, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
    let files = fs::read_dir(from).into_iter().flatten().flatten();
    for entry in files.filter(|entry| is_wanted(&entry.path())) {
        fs::create_dir_all(to)?;
        let target = to.join(entry.file_name());
        if !target.exists() {
            let beside = to.join(format!(".{}.new", entry.file_name().to_string_lossy()));
            fs::copy(entry.path(), &beside)?;
            fs::rename(&beside, target)?;
        }
    }
    Ok(())
}

/// Removes what a command that was killed left while it copied or fetched.
pub(super) fn sweep(spool: &Spool) {
    let entries = fs::read_dir(spool.root()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if [".leaving", "arriving-"]
            .iter()
            .any(|one| name.starts_with(one))
        {
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripts::{ASK, COLLECT, UNPACK};
    use super::*;
    use crate::spool::{End, EndWord, HostName};
    use std::ffi::OsStr;
    use std::process::Output;

    fn shell(script: &str, words: &[&OsStr]) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh"]).args(words);
        command.output().unwrap()
    }

    fn said(script: &str, words: &[&OsStr]) -> Vec<String> {
        let output = shell(script, words);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn words<'a>(home: &'a Path, more: &[&'a str]) -> Vec<&'a OsStr> {
        let more = more.iter().copied().map(OsStr::new);
        [home.as_os_str()].into_iter().chain(more).collect()
    }

    #[test]
    fn a_host_says_what_it_has_whole_and_takes_nothing_that_arrived_damaged() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("it's local/home");
        // A link, and a file where it would be: a host that takes nothing.
        let local = place.path().join("it's local");
        std::os::unix::fs::symlink(place.path(), &local).unwrap();
        let refused = said(ASK, &words(&home, &["7.0"]));
        assert!(
            refused[0].ends_with("belongs to somebody else or is a link"),
            "{refused:?}"
        );
        fs::remove_file(&local).unwrap();
        fs::write(&local, "").unwrap();
        assert!(said(ASK, &words(&home, &["7.0"]))[0].starts_with("cannot mkdir: "));
        fs::remove_file(&local).unwrap();
        assert_eq!(said(ASK, &words(&home, &["7.0"]))[0], "waits");
        for name in ["in", "tree/bin", "part/x/study"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::write(home.join("tree/bin/postgres"), "program").unwrap();
        fs::write(home.join("in/deltabench-ab"), "ours").unwrap();
        let pack = |from: &str, what: &str, option: &str, to: &str| {
            let mut command = Command::new("tar");
            command
                .arg("-C")
                .arg(home.join(from))
                .arg(option)
                .arg(home.join("in").join(to));
            tar(command.arg(what)).unwrap();
        };
        pack("tree", ".", "-czf", "cd");
        pack("part", "x", "-cf", "spool");
        let hash = |name: &str| sha256(&home.join("in").join(name)).unwrap();
        let (program, server, part) = (hash("deltabench-ab"), hash("cd"), hash("spool"));
        let sent = |server: &str| {
            let names = [
                "7.0",
                "study",
                "bin/deltabench-ab",
                &program,
                "servers/cd",
                server,
            ];
            shell(
                UNPACK,
                &words(&home, &[&names[..], &["spool", &part]].concat()),
            )
        };
        let refused = sent(&program);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(why.contains("in/cd has arrived damaged"), "{why}");
        assert!(!home.join("go-7.0").exists() && !home.join("servers/cd").exists());
        // The program is there, and only what is not comes again.
        let ask = ["7.0", "bin/deltabench-ab", &program, "servers/cd", &server];
        let has = || said(ASK, &words(&home, &ask));
        assert_eq!(has()[..2], ["waits", "has bin/deltabench-ab"]);
        fs::write(home.join("in/deltabench-ab"), "ours").unwrap();
        pack("tree", ".", "-czf", "cd");
        pack("part", "x", "-cf", "spool");
        let server = hash("cd");
        let taken = sent(&server);
        assert!(taken.status.success(), "{taken:?}");
        assert_eq!(has(), ["begun"]);
        let ask = ["8.0", "bin/deltabench-ab", &program, "servers/cd", &server];
        let again = said(ASK, &words(&home, &ask));
        assert_eq!(again[1..3], ["has bin/deltabench-ab", "has servers/cd"]);
        assert!(again[3].starts_with("free "), "{again:?}");
        fs::write(home.join("servers/cd/bin/postgres"), "another").unwrap();
        let damaged = said(ASK, &words(&home, &ask));
        assert_eq!(damaged[1], "has bin/deltabench-ab");
        assert!(damaged[2].starts_with("free "), "{damaged:?}");
    }

    fn lanes() -> Lanes {
        Lanes {
            execution: "study".to_owned(),
            units: vec![crate::lanes::Unit {
                unit: 1,
                run: "run".to_owned(),
                plan: deltabench_testkit::small_run::plan(),
                seconds: 1.0,
            }],
            ..Lanes::default()
        }
    }

    fn owner(node: &str, at_unix_ms: i64) -> Owner {
        Owner {
            host: HostName {
                uid: format!("uid of {node}"),
                node: node.to_owned(),
            },
            pid: 1,
            process_start: 1,
            boot_id: None,
            lane: 0,
            at_unix_ms,
        }
    }

    /// A host on which the unit was measured: its home, and the name of the sealed file.
    fn measured(place: &Path, node: &str) -> (PathBuf, String) {
        let home = place.join(node);
        fs::create_dir_all(home.join("log")).unwrap();
        fs::write(home.join("log/7_0.txt"), node).unwrap();
        let spool = Spool::of(&home, "study");
        spool.create(&lanes()).unwrap();
        let attempt = spool.claim(1, &owner(node, 5)).unwrap();
        let beside = home.join("beside");
        fs::write(&beside, format!("measured on {node}")).unwrap();
        let name = format!("sealed-{}.sqlite.gz", sha256(&beside).unwrap());
        fs::rename(beside, attempt.directory().join(&name)).unwrap();
        let end = End {
            word: EndWord::Sealed,
            text: String::new(),
            at_unix_ms: 9,
        };
        attempt.set_end(&end).unwrap();
        (home, name)
    }

    /// What a host sends, changed on its way.
    fn arriving(
        place: &Path,
        home: &Path,
        change: impl Fn(&mut Vec<u8>),
        more: &[&str],
    ) -> PathBuf {
        let arriving = place.join("arriving");
        remove(&arriving);
        fs::create_dir(&arriving).unwrap();
        let mut sent = shell(COLLECT, &words(home, &[&["study"], more].concat())).stdout;
        change(&mut sent);
        fs::write(arriving.join("parcel"), sent).unwrap();
        arriving
    }

    #[test]
    fn what_hosts_measured_is_taken_whole_once_and_by_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let lanes = lanes();
        let spool = Spool::of(&place.join("whole"), "study");
        spool.create(&lanes).unwrap();
        let take_from = |node: &str, arriving: PathBuf| take((&spool, &lanes), node, &arriving);
        let (n1, sealed) = measured(place, "n1");
        let cut = arriving(place, &n1, |sent| sent.truncate(sent.len() / 2), &[]);
        let problem = take_from("n1", cut).unwrap_err();
        assert!(problem.error.contains("n1 sent is cut off"), "{problem}");
        let spoil = |sent: &mut Vec<u8>| {
            let text = b"measured on n1";
            let at = sent
                .windows(text.len())
                .position(|part| part == text)
                .unwrap();
            sent[at] = b'M';
        };
        let spoilt = arriving(place, &n1, spoil, &[]);
        let problem = take_from("n1", spoilt).unwrap_err();
        assert!(
            problem.error.ends_with("of n1 arrived damaged"),
            "{problem}"
        );
        assert!(spool.attempts(1).is_empty());
        // Another host has taken the unit meanwhile: its first attempt is the second one here.
        let (n2, _) = measured(place, "n2");
        let taken = take_from("n2", arriving(place, &n2, |_| {}, &[]));
        assert_eq!(taken.unwrap(), 1);
        for expected in [1, 0] {
            let taken = take_from("n1", arriving(place, &n1, |_| {}, &[]));
            assert_eq!(taken.unwrap(), expected);
        }
        let attempts = spool.attempts(1);
        let nodes: Vec<String> = { attempts.iter() }
            .map(|one| one.owner().unwrap().host.node)
            .collect();
        assert_eq!(nodes, ["n2", "n1"]);
        assert!(attempts[1].directory().join(&sealed).exists());
        assert_eq!(attempts[1].end().unwrap().word, EndWord::Sealed);
        let log = fs::read_to_string(spool.log_directory().join("n1-7_0.txt"));
        assert_eq!(log.unwrap(), "n1");
        // What is here does not travel again, and a host learns that it is.
        let without = format!("--exclude={sealed}");
        let small = arriving(place, &n1, |_| {}, &[&without]);
        assert_eq!(take_from("n1", small).unwrap(), 0);
        part((&spool, &lanes), &place.join("part/x/study")).unwrap();
        let there = Spool::of(&place.join("part"), "study");
        assert!(there.is_sealed(1) && there.lanes().unwrap() == lanes);
        // A host without anything of the execution.
        let nothing = arriving(place, &place.join("n3"), |_| {}, &[]);
        assert_eq!(take_from("n3", nothing).unwrap(), 0);
    }

    #[test]
    fn an_avoidance_that_was_undone_does_not_come_back_from_a_host() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let lanes = lanes();
        let spool = Spool::of(&place.join("whole"), "study");
        spool.create(&lanes).unwrap();
        let avoid = |spool: &Spool, node: &str| {
            let host = owner(node, 1).host;
            let why = "cold".to_owned();
            spool.avoid(&Avoided { host, why }).unwrap();
        };
        ["n1", "n2"].iter().for_each(|node| avoid(&spool, node));
        // A host that got what was known then.
        let home = place.join("n1");
        part((&spool, &lanes), &home.join("x/study")).unwrap();
        fs::create_dir_all(home.join("log")).unwrap();
        for node in ["n1", "n2"] {
            assert!(spool.forgive(node).unwrap());
        }
        let fetch = || {
            let arriving = arriving(place, &home, |_| {}, &[]);
            take((&spool, &lanes), "n1", &arriving).unwrap();
            let avoided = spool.avoided().into_iter();
            avoided.map(|one| one.host.node).collect::<Vec<_>>()
        };
        assert_eq!(fetch(), [""; 0]);
        // What it finds out later about itself is taken, and nothing that it has of others.
        let there = Spool::of(&home, "study");
        avoid(&there, "n3");
        let (file, since) = (
            there.root().join("avoid/uid of n1@n1.json"),
            spool.admitted_since(&owner("n1", 1).host),
        );
        while said_at(&file) <= since {
            avoid(&there, "n1");
        }
        ["n1", "n4"]
            .iter()
            .for_each(|node| there.admit(&owner(node, 1).host).unwrap());
        assert_eq!(fetch(), ["n1"]);
        assert!(!spool.has_admitted(&owner("n4", 1).host));
    }

    #[test]
    fn a_host_with_a_copy_knows_since_when_failures_count() {
        let place = tempfile::tempdir().unwrap();
        let lanes = lanes();
        let spool = Spool::of(&place.path().join("whole"), "study");
        spool.create(&lanes).unwrap();
        let here = owner("n1", 1).host;
        spool.admit(&here).unwrap();
        let file = |spool: &Spool| spool.root().join("admitted/uid of n1.json");
        // Long ago: the copy is younger than what failed.
        let admitted = 1000;
        let text = fs::read_to_string(file(&spool)).unwrap();
        let now = spool.admitted_since(&here).to_string();
        fs::write(file(&spool), text.replace(&now, "1000")).unwrap();
        for at in 1..=3 {
            let attempt = spool.claim(1, &owner("n1", at)).unwrap();
            let end = End {
                word: EndWord::Failed,
                text: "full".to_owned(),
                at_unix_ms: admitted + at,
            };
            attempt.set_end(&end).unwrap();
        }
        part((&spool, &lanes), &place.path().join("n1/x/study")).unwrap();
        let there = Spool::of(&place.path().join("n1"), "study");
        assert_eq!(there.admitted_since(&here), admitted);
        assert_eq!(there.is_broken(&here, &[1]).as_deref(), Some("full"));
        // An older version wrote no time: that of the file holds.
        fs::write(file(&there), r#"{"uid": "uid of n1", "node": "n1"}"#).unwrap();
        assert!(there.admitted_since(&here) > admitted + 3);
        assert!(there.is_broken(&here, &[1]).is_none());
    }
}
