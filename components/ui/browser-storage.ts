let keeps = true;

/** Nothing is read from the browser's store or written to it from now on: what is chosen lasts as long as the page. */
export function keepNothing(): void {
  keeps = false;
}

/** @returns null if the browser keeps nothing: private windows, sites that may not store, embeds */
export function browserStorage(): Storage | null {
  try {
    return keeps ? window.localStorage : null;
  } catch {
    return null;
  }
}
