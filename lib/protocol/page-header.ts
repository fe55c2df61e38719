/**
 * The dashboard's own pages send this with every request they make by themselves. No page of another origin can, without
 * asking first: browsers say nothing of where a request comes from on plain http to another host than localhost.
 */
export const PAGE_HEADER = 'x-interlude-page';
