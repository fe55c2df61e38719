/**
 * The dashboard's own pages send this with every request they make. A page of another origin can't without a preflight.
 * It is needed on plain http to hosts other than localhost, where browsers do not say where a request comes from.
 */
export const PAGE_HEADER = 'x-interlude-page';

/**
 * The `id` of `GET /me` for which a request was composed. When another person sends it, because a browser has passed on
 * to them meanwhile, the server answers `other_principal`. The dashboard's pages send it always, programs may.
 */
export const PRINCIPAL_HEADER = 'x-interlude-principal';
