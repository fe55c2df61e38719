/** What the proxy tells the page of it. */
export const EMBED_HEADER = 'x-interlude-embed';

/** The pages that a console shows in a frame. They come to anybody, for there is nothing in them. */
const EMBED_PAGE = /^\/embed\/(?:sessions\/[^/]+|agents\/[^/]+\/logs|fleet)$/;

export function isEmbedPage(pathname: string): boolean {
  return EMBED_PAGE.test(pathname);
}
