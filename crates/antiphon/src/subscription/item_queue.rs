//! A queue of items, bounded by number and bytes.

use std::collections::VecDeque;

use antiphon_core::RawJson;

#[derive(Debug)]
pub(super) struct ItemQueue {
    items: VecDeque<RawJson>,
    bytes: usize,
    max_items: usize,
    max_bytes: usize,
    /// The number of items dropped since the last one was taken.
    lost: u64,
}

impl ItemQueue {
    pub(super) fn new(max_items: usize, max_bytes: usize) -> Self {
        Self { items: VecDeque::new(), bytes: 0, max_items: max_items.max(1), max_bytes, lost: 0 }
    }

    /// Whether there is room. One item always fits into an empty queue.
    pub(super) fn has_room(&self, item: &RawJson) -> bool {
        let fits = self.bytes.saturating_add(item.as_bytes().len()) <= self.max_bytes;
        self.items.is_empty() || (self.items.len() < self.max_items && fits)
    }

    pub(super) fn push(&mut self, item: RawJson) {
        self.bytes += item.as_bytes().len();
        self.items.push_back(item);
    }

    /// Drops the oldest items until there is room, and counts them. Returns how many were dropped.
    pub(super) fn push_dropping_oldest(&mut self, item: RawJson) -> u64 {
        let mut dropped = 0;
        while !self.has_room(&item) && self.pop().is_some() {
            dropped += 1;
        }
        self.add_lost(dropped);
        self.push(item);
        dropped
    }

    pub(super) fn front(&self) -> Option<&RawJson> {
        self.items.front()
    }

    pub(super) fn pop(&mut self) -> Option<RawJson> {
        let item = self.items.pop_front()?;
        self.bytes -= item.as_bytes().len();
        Some(item)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn add_lost(&mut self, items: u64) {
        self.lost = self.lost.saturating_add(items);
    }

    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    pub(super) fn clear(&mut self) {
        self.items = VecDeque::new();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn the_queue_is_bounded_by_number_and_by_bytes() {
        let mut queue = ItemQueue::new(2, 10);
        assert!(queue.has_room(&item("\"far more than ten bytes\"")));
        queue.push(item("11111111"));
        assert!(queue.has_room(&item("22")) && !queue.has_room(&item("333")));
        queue.push(item("22"));
        assert!(!queue.has_room(&item("0")));
        assert_eq!(queue.pop(), Some(item("11111111")));
        assert!(queue.has_room(&item("0")));
    }

    #[test]
    fn the_oldest_items_are_dropped_and_counted() {
        let mut queue = ItemQueue::new(2, 10);
        for n in 0..5 {
            queue.push_dropping_oldest(item(&n.to_string()));
        }
        assert_eq!((queue.front(), queue.lost()), (Some(&item("3")), 3));
        queue.take_lost();
        queue.push_dropping_oldest(item("1234567890"));
        assert_eq!((queue.pop(), queue.lost()), (Some(item("1234567890")), 2));
        assert!(queue.is_empty());
    }
}
