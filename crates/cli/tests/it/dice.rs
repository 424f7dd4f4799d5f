//! Numbers that are the same in every run.

/// A series of them.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Below `sides`, which is not 0.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % sides
    }

    /// The same, as an index.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }
}
