//! The script that `sbatch` takes: all options in it, so that the line that submits it is short.

use super::Slurm;
use super::array::{self, Array};
use crate::engine::{After, Copied, Submission};
use deltabench_model::problem::Problem;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Seconds before the time limit at which USR1 comes; Slurm may send it up to 60 s earlier.
const NOTICE_S: u32 = 180;

/// Where the script of a submission stands; the number makes it the only one of its name.
pub(super) fn path(submission: &Submission, number: u32) -> PathBuf {
    let plain = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
        _ => '_',
    };
    let name: String = submission.name.chars().map(plain).collect();
    submission.directory.join(format!("{name}-{number}.sh"))
}

/// How a job is found again whose number nobody got: the path of its script.
pub(super) fn comment(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The script. `path` says where it will stand.
///
/// Errors: something in it has no form in Slurm's options.
pub(super) fn text(
    slurm: &Slurm,
    submission: &Submission,
    path: &Path,
) -> Result<Vec<u8>, Problem> {
    let lines = options(slurm, submission, path)?;
    let mut text = b"#!/bin/sh\n".to_vec();
    for line in lines {
        text.extend_from_slice(b"#SBATCH ");
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    if let Some(copied) = &submission.copied {
        text.extend(waiting(copied, submission.from)?);
    }
    // The program takes the shell's place, so that signals reach it.
    text.extend_from_slice(b"exec");
    for argument in &submission.command {
        text.push(b' ');
        text.extend(quoted(argument)?);
    }
    let element = match submission.from {
        0 => "$SLURM_ARRAY_TASK_ID".to_owned(),
        from => format!("$((SLURM_ARRAY_TASK_ID + {from}))"),
    };
    text.extend_from_slice(format!(" \"{element}\"\n").as_bytes());
    Ok(text)
}

/// The lines of options.
fn options(slurm: &Slurm, submission: &Submission, path: &Path) -> Result<Vec<String>, Problem> {
    let directory = text_of(submission.directory.as_os_str())?;
    if directory.contains('\\') {
        return Err(
            Problem::new("Slurm cannot write output there").detail(format!(
                "{directory} contains a backslash, which turns off %A and %a"
            )),
        );
    }
    // Before a host has the home of the execution, nothing of it can be named there.
    let (output, chdir) = match submission.copied {
        Some(_) => ("/dev/null".to_owned(), "/"),
        None => (
            format!(
                "{}/{}_%a.txt",
                directory.replace('%', "%%"),
                array::named("%A", submission.from)
            ),
            directory,
        ),
    };
    let numbers = submission.elements.iter();
    let numbers = numbers.map(|element| element.saturating_sub(submission.from));
    let array = ranges(&numbers.collect::<Vec<u32>>());
    let array = match submission.at_once {
        Some(at_once) => format!("{array}%{}", at_once.max(1)),
        None => array,
    };
    let mut lines = vec![
        format!(
            "{} --exclusive --mem=0 --nodes=1 --ntasks=1 --requeue --open-mode=append",
            option("--job-name", &submission.name)?
        ),
        format!(
            "--time={} --signal=B:USR1@{NOTICE_S} --export=NIL",
            submission.minutes.max(1)
        ),
        option("--output", &output)?,
        option("--chdir", chdir)?,
        option("--comment", &comment(path))?,
        option("--array", &array)?,
    ];
    if let Some(partition) = &slurm.partition {
        lines.push(option("--partition", partition)?);
    }
    if let Some(constraint) = &slurm.constraint {
        lines.push(option("--constraint", constraint)?);
    }
    let excluded = slurm.excluded(&submission.avoid);
    if !excluded.is_empty() {
        lines.push(option("--exclude", &excluded.join(","))?);
    }
    if let Some(only) = &submission.only {
        lines.push(option("--nodelist", only)?);
    }
    if let Some(after) = &submission.after {
        lines.push(dependency(after)?);
    }
    for extra in { slurm.extra.iter() }.filter(|word| !word.starts_with(super::EXCLUDE)) {
        lines.push(word(extra)?);
    }
    Ok(lines)
}

/// What a host does before it has anything of us: it makes the home of the execution and waits there. If it
/// cannot make it, it waits all the same: a host that ends its lanes at once would be given all of them, and
/// who watches sees why.
const WAITING: &str = r#"umask 022
home=$local/$execution@$SLURMD_NODENAME
log=log/${array}_$SLURM_ARRAY_TASK_ID.txt waited=0
until mkdir -p -m 711 "$local" && [ -O "$local" ] && [ ! -L "$local" ] &&
  mkdir -p "$home/log" "$home/in" && cd "$home" && touch "$log"; do
  [ "$waited" -lt "$patience" ] || exit 75
  sleep 1; waited=$((waited + 1))
done
exec >>"$log" 2>&1
go=go-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
echo "$SLURMD_NODENAME waits for what it needs: fleet watch has to run"
until [ -f "$go" ]; do
  [ "$waited" -lt "$patience" ] || { echo "nothing came in $patience s"; exit 75; }
  sleep 1; waited=$((waited + 1))
done
"#;

fn waiting(copied: &Copied, from: u32) -> Result<Vec<u8>, Problem> {
    let mut text = b"local=".to_vec();
    text.extend(quoted(copied.local.as_os_str())?);
    text.extend_from_slice(b" execution=");
    text.extend(quoted(OsStr::new(&copied.execution))?);
    let array = array::named("$SLURM_ARRAY_JOB_ID", from);
    text.extend_from_slice(format!(" array={array}").as_bytes());
    text.extend_from_slice(format!(" patience={}\n", copied.patience_seconds).as_bytes());
    text.extend_from_slice(WAITING.as_bytes());
    Ok(text)
}

/// What a job waits for. One that waits for a success that cannot come ends, instead of waiting for ever.
fn dependency(after: &After) -> Result<String, Problem> {
    let (kind, jobs, end) = match after {
        After::Success(jobs) => ("afterok", jobs, " --kill-on-invalid-dep=yes"),
        After::End(jobs) => ("afterany", jobs, ""),
    };
    let jobs: Vec<&str> = jobs.iter().map(|job| Array::of(job).id).collect();
    let option = option("--dependency", &format!("{kind}:{}", jobs.join(":")))?;
    Ok(option + end)
}

/// Numbers as Slurm writes arrays: `1,3-7`.
pub(super) fn ranges(elements: &[u32]) -> String {
    let mut elements = elements.to_vec();
    elements.sort_unstable();
    elements.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for element in elements {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(element) => *last = element,
            _ => ranges.push((element, element)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = ranges.into_iter().map(text).collect();
    ranges.join(",")
}

fn text_of(path: &OsStr) -> Result<&str, Problem> {
    path.to_str().ok_or_else(|| {
        Problem::new("Slurm cannot write output there")
            .detail(format!("{} is not UTF-8", path.display()))
    })
}

fn option(name: &str, value: &str) -> Result<String, Problem> {
    Ok(format!("{name}={}", word(value)?))
}

/// A word of a line of options: quoted where a blank or `#` would end it.
fn word(value: &str) -> Result<String, Problem> {
    if value.chars().any(char::is_control) {
        return Err(Problem::new("an option of Slurm has one line").detail(format!("{value:?}")));
    }
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%@+&|*[]()".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        return Ok(value.to_owned());
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{escaped}\""))
}

/// A word of the shell.
fn quoted(argument: &OsStr) -> Result<Vec<u8>, Problem> {
    let bytes = argument.as_bytes();
    if bytes.contains(&0) {
        return Err(
            Problem::new("an argument contains a zero byte").detail(argument.display().to_string())
        );
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,%@+".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return Ok(bytes.to_vec());
    }
    let mut quoted = b"'".to_vec();
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::process::Command;

    fn submission(command: &[&OsStr]) -> Submission {
        Submission {
            name: "dlb-study".to_owned(),
            command: command.iter().map(OsString::from).collect(),
            elements: vec![3, 1, 4, 5, 5, 9],
            from: 0,
            at_once: Some(3),
            minutes: 90,
            avoid: Vec::new(),
            only: None,
            after: None,
            directory: PathBuf::from("/srv/x/it's 100% \"q\" #x"),
            copied: None,
            held: None,
        }
    }

    fn lines(slurm: &Slurm, submission: &Submission) -> Vec<String> {
        let text = text(slurm, submission, &path(submission, 1)).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_script_holds_all_options() {
        let slurm = Slurm {
            partition: Some("bench".to_owned()),
            constraint: Some("epyc&nvme".to_owned()),
            extra: vec!["--account=perf".to_owned(), "--nice=a b".to_owned()],
            ..Slurm::default()
        };
        let mut asked = submission(&["/srv/bin/deltabench".as_ref(), "fleet".as_ref()]);
        asked.avoid = vec!["n1".to_owned(), "n2".to_owned()];
        asked.after = Some(After::Success(vec!["7".to_owned(), "8".to_owned()]));
        let place = r#"/srv/x/it's 100%% \"q\" #x"#;
        let single = place.replace("%%", "%");
        let expected = [
            "#!/bin/sh".to_owned(),
            "#SBATCH --job-name=dlb-study --exclusive --mem=0 --nodes=1 --ntasks=1 --requeue \
             --open-mode=append"
                .to_owned(),
            "#SBATCH --time=90 --signal=B:USR1@180 --export=NIL".to_owned(),
            format!("#SBATCH --output=\"{place}/%A_%a.txt\""),
            format!("#SBATCH --chdir=\"{single}\""),
            format!("#SBATCH --comment=\"{single}/dlb-study-1.sh\""),
            "#SBATCH --array=1,3-5,9%3".to_owned(),
            "#SBATCH --partition=bench".to_owned(),
            "#SBATCH --constraint=epyc&nvme".to_owned(),
            "#SBATCH --exclude=n1,n2".to_owned(),
            "#SBATCH --dependency=afterok:7:8 --kill-on-invalid-dep=yes".to_owned(),
            "#SBATCH --account=perf".to_owned(),
            "#SBATCH \"--nice=a b\"".to_owned(),
            "exec /srv/bin/deltabench fleet \"$SLURM_ARRAY_TASK_ID\"".to_owned(),
        ];
        assert_eq!(lines(&slurm, &asked), expected);
        let mut with_own = slurm.clone();
        with_own.extra.push("--exclude=n7".to_owned());
        let excluded = lines(&with_own, &asked);
        let excluded: Vec<&String> = { excluded.iter() }
            .filter(|line| line.contains("--exclude="))
            .collect();
        assert_eq!(excluded, ["#SBATCH --exclude=n1,n2,n7"]);
        asked.after = Some(After::End(vec!["7".to_owned()]));
        asked.only = Some("n3".to_owned());
        let lines = lines(&slurm, &asked);
        assert!(lines.contains(&"#SBATCH --nodelist=n3".to_owned()));
        assert!(lines.contains(&"#SBATCH --dependency=afterany:7".to_owned()));
    }

    #[test]
    fn an_array_counts_from_zero_and_its_program_hears_the_number_of_the_lane() {
        let mut asked = submission(&["printf".as_ref(), "%s".as_ref()]);
        asked.elements = vec![2004, 2002, 2003];
        asked.from = 2002;
        asked.after = Some(After::End(vec!["7+1001".to_owned(), "8".to_owned()]));
        let lines = lines(&Slurm::default(), &asked);
        for line in ["--array=0-2%3", "--dependency=afterany:7:8"] {
            assert!(lines.contains(&format!("#SBATCH {line}")), "{lines:?}");
        }
        let output = { lines.iter() }.find(|line| line.contains("--output"));
        assert!(output.unwrap().ends_with("/%A+2002_%a.txt\""), "{output:?}");
        let script = lines.join("\n");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env("SLURM_ARRAY_TASK_ID", "1");
        assert_eq!(shell.output().unwrap().stdout, b"2003");
    }

    #[test]
    fn arguments_reach_the_program_unchanged() {
        let awkward = [
            OsStr::new("a b"),
            OsStr::new(""),
            OsStr::new("it's \"$HOME\" `id` \\ * #"),
            OsStr::new("two\nlines"),
            OsStr::from_bytes(b"no \xff UTF-8"),
        ];
        let mut command = vec![OsStr::new("printf"), OsStr::new("%s\\0")];
        command.extend(awkward);
        let asked = submission(&command);
        let script = text(&Slurm::default(), &asked, &path(&asked, 1)).unwrap();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(OsStr::from_bytes(&script));
        let output = shell.env("SLURM_ARRAY_TASK_ID", "7").output().unwrap();
        let mut expected: Vec<&[u8]> = awkward.iter().map(|word| word.as_bytes()).collect();
        expected.extend([b"7".as_slice(), b"".as_slice()]);
        let printed: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(printed, expected);
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let mut asked = submission(&["true".as_ref()]);
        asked.name = "two\nlines".to_owned();
        assert!(text(&Slurm::default(), &asked, Path::new("/x")).is_err());
        asked.name = "good".to_owned();
        asked.directory = PathBuf::from("/srv/a\\b");
        assert!(text(&Slurm::default(), &asked, Path::new("/x")).is_err());
        let zero = submission(&["a\0b".as_ref()]);
        assert!(text(&Slurm::default(), &zero, Path::new("/x")).is_err());
    }

    #[test]
    fn ranges_join_neighbours_only() {
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0-2,4,6-7");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[u32::MAX, 1]), "1,4294967295");
    }
}
