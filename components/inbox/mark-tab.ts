import { withBasePath } from '@interlude/protocol/base-path.mjs';

/** What a browser shows of a page in its tab, besides: drawn by the same hand as the icon of the app. */
const NEWS_ICON = withBasePath('/icon-news.svg');

/**
 * Puts a count before the page's title, and a dot on its icon, until the returned function is called. A page that is
 * gone to sets a title of its own: the count stands before that too.
 *
 * @param count as it is written: `3`, `100+`
 */
export function markTab(count: string): () => void {
  let title = document.title;
  let marked: string | null = null;
  const icons = new Map<HTMLLinkElement, string>();
  const mark = () => {
    if (document.title !== marked) {
      title = document.title;
      marked = `(${count}) ${title}`;
      document.title = marked;
    }
    for (const icon of document.head.querySelectorAll<HTMLLinkElement>('link[rel="icon"]')) {
      const href = icon.getAttribute('href') ?? '';
      if (href === NEWS_ICON) continue;
      icons.set(icon, href);
      icon.setAttribute('href', NEWS_ICON);
    }
  };
  mark();
  const watch = new MutationObserver(mark);
  watch.observe(document.head, { subtree: true, childList: true, characterData: true });
  return () => {
    watch.disconnect();
    if (document.title === marked) document.title = title;
    for (const [icon, href] of icons) icon.setAttribute('href', href);
  };
}
