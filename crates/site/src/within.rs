//! Pages that stand for themselves, within a lab.

use crate::frame::way;
use crate::lab::Lab;
use crate::route::Links;
use crate::withhold::COMMAND;
use deltabench_model::plan::Plan;
use maud::{Markup, html};

const STYLE: &str = include_str!("site.css");

/// Takes out of a plan what says where and by whom it was asked for.
pub(crate) fn hide(plan: &mut Plan, lab: &Lab) {
    if !lab.shows_hosts {
        plan.command = vec![COMMAND.to_owned()];
    }
}

/// A page that stands for itself, with the way through the lab and what it has to do with the rest of it.
pub(crate) fn within(page: &str, about: &Markup, links: &Links) -> String {
    let style = format!("<style>{STYLE}</style></head>");
    let top = html! { (way(links)) (about) }.into_string();
    let with_style = page.replacen("</head>", &style, 1);
    with_style.replacen("<main>", &format!("<main>{top}"), 1)
}
