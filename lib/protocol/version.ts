import { BASE_PATH } from './base-path.mjs';

/** Changes only when an old client would misread the new wire. */
export const PROTOCOL_VERSION = '1';
export const API_BASE = `/api/v${PROTOCOL_VERSION}`;
/** API_BASE below this server's base path, for requests of its own pages. */
export const API_ADDRESS = BASE_PATH + API_BASE;

/**
 * Sent by the dashboard's own pages with every request; a page of another origin can't without a preflight. Needed on
 * plain http to hosts other than localhost, where browsers omit the origin of a request.
 */
export const PAGE_HEADER = 'x-interlude-page';

/**
 * Value of PAGE_HEADER if the person used the page (key, pointer or wheel) in the last minute; otherwise `1`. Only
 * navigations and requests with this value count as use of a sign-in, because pages also send requests on their own.
 */
export const USED_PAGE = 'used';

/**
 * The person who composed a request, by the `id` of `GET /me`. If another one sends it from a shared browser, the server
 * responds with `other_principal`. The dashboard's pages send it with every request; programs may omit it.
 */
export const PRINCIPAL_HEADER = 'x-interlude-principal';
