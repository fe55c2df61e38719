import { person } from './browser-storage';

const listeners = new Set<() => void>();

/** Calls back when the page leaves, for what outlives it on the screen. @returns unsubscribe */
export function onLeave(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Takes the page off the screen at once and loads it again, for whoever is signed in by now. From here on it stores and
 * sends nothing, and does not ask about unfinished uploads: they belonged to somebody else.
 */
export function leavePage(): void {
  if (person.hasLeft) return;
  person.hasLeft = true;
  document.documentElement.style.display = 'none';
  for (const listener of listeners) listener();
  addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), { capture: true });
  location.reload();
}
