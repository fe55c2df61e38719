/**
 * The dashboard's own pages send this with every request they make. A page of another origin can't without a preflight.
 * It is needed on plain http to hosts other than localhost, where browsers do not say where a request comes from.
 */
export const PAGE_HEADER = 'x-interlude-page';
