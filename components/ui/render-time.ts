/** What of heavy work is done at once, for the whole page: half of what a 60 Hz frame grants. The rest comes in turn. */
const SLICE_MS = 8;

/** What has been done at once since the page had a turn for anything else. */
let spentMs = 0;

/** Whether something that comes into the page may do its heavy work while it is rendered, rather than in turn. */
export function hasTime(): boolean {
  return spentMs < SLICE_MS;
}

/**
 * One slice of heavy work: it asks after every piece whether it may go on. However much there is, and however slow the
 * machine, it takes no longer than a slice and a piece.
 */
export function inSlice<Result>(work: (goesOn: () => boolean) => Result): Result {
  const began = performance.now();
  try {
    return work(() => performance.now() < began + SLICE_MS);
  } finally {
    spendTime(performance.now() - began);
  }
}

function spendTime(ms: number): void {
  // A server has told by then what it does at once.
  if (typeof window === 'undefined') return;
  if (spentMs === 0) {
    setTimeout(() => {
      spentMs = 0;
    });
  }
  spentMs += ms;
}
