import { BASE_PATH } from './base-path.mjs';

/** It changes only when an old client would misread the new wire. */
export const PROTOCOL_VERSION = '1';
export const API_BASE = `/api/v${PROTOCOL_VERSION}`;
/** The same as this server's own pages ask for it. */
export const API_ADDRESS = BASE_PATH + API_BASE;

/**
 * The dashboard's own pages send this with every request they make. A page of another origin can't without a preflight.
 * It is needed on plain http to hosts other than localhost, where browsers do not say where a request comes from.
 */
export const PAGE_HEADER = 'x-interlude-page';

/**
 * Value of that header if the person used the page (key, pointer or wheel) in the last minute; otherwise `1`. Besides
 * navigations, only requests with this value count as use of a sign-in, because pages also send requests by themselves.
 */
export const USED_PAGE = 'used';

/**
 * Names the person who composed a request, by the `id` of `GET /me`. The server answers `other_principal` if another one
 * sends it, because they share a browser. The dashboard's pages send it with every request; programs may leave it out.
 */
export const PRINCIPAL_HEADER = 'x-interlude-principal';
