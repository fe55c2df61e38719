import { AppRouterContext, type AppRouterInstance } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { PathnameContext, SearchParamsContext } from 'next/dist/shared/lib/hooks-client-context.shared-runtime';
import { type ReactNode, useMemo, useSyncExternalStore } from 'react';

const nothing = () => undefined;

/** Navigates as Next does, without rendering the target page. */
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
 * Provides the URL and router for Next's hooks. The URL follows `history`, as on a page.
 *
 * Prefer it to mocking `next/navigation`: test files of a worker share modules, so a mock affects other files, or comes
 * too late for a component that an earlier file imported.
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

/** Follows `history.pushState` and `replaceState` like Next; browsers fire `popstate` only for back and forward. */
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
  // remove the page's overrides; the prototype has the browser's methods
  for (const name of ['pushState', 'replaceState'] as const) Reflect.deleteProperty(history, name);
}
