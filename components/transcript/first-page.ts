/** Turns of the page that paints first; older ones come while the reader scrolls. */
export const FIRST_PAGE = 30;
