import { BASE_PATH } from '@interlude/protocol/base-path.mjs';

/** Includes the base path, because several dashboards may share an origin. */
export const STORAGE_PREFIX = `interlude${BASE_PATH}:`;

/** Key of a user's value. Not in browser-storage.ts, whose code the server can't call. */
export function storageKeyOf(person: string, name: string): string {
  return `${STORAGE_PREFIX}of:${encodeURIComponent(person)}:${name}`;
}

/** `icons` if the sidebar is collapsed. */
export const SIDEBAR_KEY = 'sidebar';

/** The reader's `TimeSettings`. */
export const TIMES_KEY = 'times';

/** The saved views of the board, as JSON. */
export const VIEWS_KEY = 'board-views';
