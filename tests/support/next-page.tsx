import { AppRouterContext, type AppRouterInstance } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { PathnameContext, SearchParamsContext } from 'next/dist/shared/lib/hooks-client-context.shared-runtime';
import { type ReactNode, useMemo, useSyncExternalStore } from 'react';

const nothing = () => undefined;

/** Sends people on as Next does, apart from rendering the page there. */
const ROUTER: AppRouterInstance = {
  bfcacheId: '0',
  back: nothing,
  forward: nothing,
  refresh: nothing,
  prefetch: nothing,
  push: (href) => history.pushState(null, '', href),
  replace: (href) => history.replaceState(null, '', href),
};

/**
 * Gives its children the address and the router that Next's own hooks read. The address follows `history`, as in a page.
 *
 * Use it instead of a mock of `next/navigation`: the test files of one worker share modules, so a mock reaches other
 * files, or comes too late for a component that an earlier file has imported.
 */
export function NextPage({ children }: { children: ReactNode }) {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  const search = useSyncExternalStore(subscribe, () => location.search);
  const params = useMemo(() => new URLSearchParams(search), [search]);
  return (
    <AppRouterContext value={ROUTER}>
      <PathnameContext value={path}>
        <SearchParamsContext value={params}>{children}</SearchParamsContext>
      </PathnameContext>
    </AppRouterContext>
  );
}

const listeners = new Set<() => void>();

/** Browsers fire `popstate` for back and forward only. Like Next, this also follows `history.pushState` and `replaceState`. */
function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) follow();
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) unfollow();
  };
}

const tell = () => {
  for (const listener of listeners) listener();
};

function follow(): void {
  addEventListener('popstate', tell);
  for (const name of ['pushState', 'replaceState'] as const) {
    const move = history[name];
    history[name] = (...given) => {
      move.apply(history, given);
      tell();
    };
  }
}

function unfollow(): void {
  removeEventListener('popstate', tell);
  // what a page did to its own object goes; the prototype has the browser's
  for (const name of ['pushState', 'replaceState'] as const) Reflect.deleteProperty(history, name);
}
