//! What people wrote beside versions and moments, for one cell.

use crate::band::{Mark, Point};
use crate::frame::moment;
use deltabench_lab::HostTrend;
use deltabench_model::units::to_f64;
use deltabench_store::Annotation;
use maud::{Markup, html};

/// An annotation of this cell, with the number that charts and list have in common.
pub(super) struct Note<'a> {
    number: i64,
    annotation: &'a Annotation,
}

/// Those that are about a cell of a host.
pub(super) fn of<'a>(host: &HostTrend, cell: &str, all: &'a [(i64, Annotation)]) -> Vec<Note<'a>> {
    let is_meant = |one: &Annotation| {
        let here = one.host.as_ref().is_none_or(|uid| *uid == host.machine);
        here && one.cell.as_ref().is_none_or(|name| name == cell)
    };
    let own = all.iter().filter(|(_, one)| is_meant(one));
    own.map(|(number, annotation)| Note {
        number: *number,
        annotation,
    })
    .collect()
}

impl Note<'_> {
    fn mark(&self, x: f64) -> Mark {
        Mark {
            x,
            class: "note",
            label: self.number.to_string(),
            title: self.annotation.text.clone(),
        }
    }

    /// The version that it is about, among those of a host.
    fn version(&self, host: &HostTrend) -> Option<usize> {
        let asked = self.annotation.version.as_deref()?;
        let is = |version: &deltabench_lab::Version| version.is_called(asked);
        host.versions.iter().position(is)
    }

    /// When it is about: the moment itself, or the first time of its version.
    fn at_unix_ms(&self, host: &HostTrend) -> Option<i64> {
        let first = |at: usize| host.versions.get(at).map(|version| version.first_ms);
        let at = self.annotation.at_unix_ms;
        at.or_else(|| self.version(host).and_then(first))
    }
}

/// Marks in the order of versions.
pub(super) fn at_versions(notes: &[Note<'_>], host: &HostTrend, points: &[Point]) -> Vec<Mark> {
    let mark = |note: &Note<'_>| {
        let version = note.version(host)?;
        let point = points.iter().find(|point| point.version == version)?;
        Some(note.mark(point.x))
    };
    notes.iter().filter_map(mark).collect()
}

/// Marks in the order of time.
pub(super) fn at_moments(notes: &[Note<'_>], host: &HostTrend) -> Vec<Mark> {
    let mark = |note: &Note<'_>| Some(note.mark(moment_x(note.at_unix_ms(host)?)));
    notes.iter().filter_map(mark).collect()
}

/// The place of a moment on an axis of time.
pub(super) fn moment_x(unix_ms: i64) -> f64 {
    to_f64(unix_ms.unsigned_abs())
}

/// The list below the charts.
pub(super) fn list(notes: &[Note<'_>]) -> Markup {
    html! {
        @if !notes.is_empty() {
            section #notes {
                h2 { "What people know" }
                ul.findings { @for note in notes {
                    @let one = note.annotation;
                    li {
                        b.note { (note.number) " " (one.kind.word()) } " "
                        @if let Some(version) = &one.version { (version) ": " }
                        @if let Some(at) = one.at_unix_ms { (moment(at)) ": " }
                        (one.text)
                    }
                } }
            }
        }
    }
}
