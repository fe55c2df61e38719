/**
 * Gives the event loop a turn. Local libSQL answers without one and so do streams with room, so a loop over pages
 * would otherwise hold up every other request until its end.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
