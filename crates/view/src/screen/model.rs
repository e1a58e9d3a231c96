//! What the user of the screen is at: the row, the filter, the pages that are open. [`update`] says what a key makes of it;
//! what a key was on which keyboard is the terminal's business.

use super::{Scene, Size, page, tree};
use treebeam_core::id::{NodeId, Place};

/// The longest filter.
const FILTER: usize = 60;

/// What the user is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The row of the tree.
    pub(super) cursor: Place,
    /// What the rows of the tree have to contain.
    pub(super) filter: String,
    /// The pages that lie over the tree, the one that is seen last.
    pub(super) pages: Vec<Page>,
}

/// Something that lies over the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// The filter is being typed; the tree is seen.
    Filter,
    /// All that is on record about a node or an eval, from this line on.
    Item { place: Place, top: usize },
    /// A file of it: which of those that are there, and where in it.
    Paper { place: Place, which: usize, at: At },
    /// The keys, from this line on.
    Help { top: usize },
}

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// At its end, also when that moves on.
    End,
    /// From this line on.
    Line(usize),
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// To the left.
    Left,
    /// To the right.
    Right,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// The character before the cursor goes.
    Backspace,
    /// A character.
    Char(char),
}

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The screen stays.
    Stay(Model),
    /// The user has seen enough.
    Quit,
}

/// A file that the user wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose.
    pub place: Place,
    /// Which of those that are there; counted on beyond the last one.
    pub which: usize,
    /// Whether its end is to be followed.
    pub follow: Follow,
}

/// Whether the end of a file is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// What is added is shown.
    Yes,
    /// What is seen stays where it is.
    No,
}

impl Default for Model {
    fn default() -> Self {
        Self { cursor: Place::Node(NodeId::ROOT), filter: String::new(), pages: Vec::new() }
    }
}

impl Model {
    /// The file that is to be seen, if one is.
    #[must_use]
    pub fn wanted(&self) -> Option<Wanted> {
        let papers = self.pages.iter().rev();
        let mut papers = papers.filter_map(|page| match *page {
            Page::Paper { place, which, at } => Some((place, which, at)),
            Page::Filter | Page::Item { .. } | Page::Help { .. } => None,
        });
        let (place, which, at) = papers.next()?;
        let follow = if at == At::End { Follow::Yes } else { Follow::No };
        Some(Wanted { place, which, follow })
    }

    fn over(mut self, page: Page) -> Self {
        self.pages.push(page);
        self
    }

    fn back(mut self) -> Self {
        self.pages.pop();
        self
    }
}

/// What a key makes of it, on a screen of this size.
#[must_use]
pub fn update(model: Model, key: Key, scene: &Scene<'_>, size: Size) -> Next {
    let top = model.pages.last().copied();
    if top == Some(Page::Filter) {
        return Next::Stay(typed(model, key));
    }
    Next::Stay(match (key, top) {
        (Key::Char('q'), _) => return Next::Quit,
        (Key::Escape | Key::Left | Key::Char('h') | Key::Backspace, Some(_))
        | (Key::Char('?'), Some(Page::Help { .. })) => model.back(),
        (Key::Char('?'), _) => model.over(Page::Help { top: 0 }),
        (_, None) => on_tree(model, key, scene, size),
        (_, Some(page)) => on_page(model, page, key, scene, size),
    })
}

/// While the filter is typed.
fn typed(mut model: Model, key: Key) -> Model {
    match key {
        Key::Enter | Key::Up | Key::Down => model.back(),
        Key::Escape => Model { filter: String::new(), ..model.back() },
        Key::Backspace => {
            model.filter.pop();
            model
        }
        Key::Char(c) => {
            let room = model.filter.chars().count() < FILTER && !c.is_control();
            model.filter.extend(room.then_some(c));
            model
        }
        Key::Left | Key::Right | Key::PageUp | Key::PageDown | Key::Home | Key::End | Key::Tab => {
            model
        }
    }
}

/// What a key does to the row that is shown as the cursor's; where no row is shown, there is nothing to be opened.
fn on_tree(mut model: Model, key: Key, scene: &Scene<'_>, size: Size) -> Model {
    let rows = tree::rows(scene.facts, &model.filter);
    let index = tree::chosen(&rows, model.cursor);
    let row = rows.get(index).map(|row| row.place);
    model.cursor = row.unwrap_or(model.cursor);
    match (key, row) {
        (Key::Char('/' | 'f'), _) => model.over(Page::Filter),
        (Key::Escape, _) => Model { filter: String::new(), ..model },
        (Key::Enter | Key::Right, Some(place)) => model.over(Page::Item { place, top: 0 }),
        (Key::Char('l'), Some(place)) => model.over(Page::Paper { place, which: 0, at: At::End }),
        (Key::Char('b'), _) => {
            let cursor = Place::Node(scene.facts.best());
            Model { cursor, filter: String::new(), ..model }
        }
        _ => {
            let index = moved(index, key, rows.len(), super::tree_height(scene, size));
            let cursor = rows.get(index).map_or(model.cursor, |row| row.place);
            Model { cursor, ..model }
        }
    }
}

/// A line after a key, of so many, of which so many are seen.
fn moved(line: usize, key: Key, all: usize, seen: usize) -> usize {
    let last = all.saturating_sub(1);
    let page = seen.saturating_sub(1).max(1);
    match key {
        Key::Up | Key::Char('k') => line.saturating_sub(1),
        Key::Down | Key::Char('j') => (line + 1).min(last),
        Key::PageUp => line.saturating_sub(page),
        Key::PageDown | Key::Char(' ') => (line + page).min(last),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        Key::Left
        | Key::Right
        | Key::Enter
        | Key::Escape
        | Key::Tab
        | Key::Backspace
        | Key::Char(_) => line,
    }
}

fn on_page(mut model: Model, page: Page, key: Key, scene: &Scene<'_>, size: Size) -> Model {
    if let (Key::Char('l'), Page::Item { place, .. }) = (key, page) {
        return model.over(Page::Paper { place, which: 0, at: At::End });
    }
    let all = page::content(scene, page, size).len();
    let seen = page::height(size);
    // The first line that can stand on top.
    let tops = all.saturating_sub(seen) + 1;
    let moved = |top: usize| moved(top.min(tops - 1), key, tops, seen);
    let new = match page {
        Page::Filter => page,
        Page::Item { place, top } => Page::Item { place, top: moved(top) },
        Page::Help { top } => Page::Help { top: moved(top) },
        Page::Paper { place, which, .. } if key == Key::Tab => {
            Page::Paper { place, which: which + 1, at: At::End }
        }
        Page::Paper { place, which, at } => {
            let top = moved(if let At::Line(top) = at { top } else { tops - 1 });
            let at = if top + 1 >= tops { At::End } else { At::Line(top) };
            Page::Paper { place, which, at }
        }
    };
    if let Some(last) = model.pages.last_mut() {
        *last = new;
    }
    model
}
