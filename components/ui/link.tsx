'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
// AppRouterContext is not a public export of Next. The public useRouter throws where no router is mounted, as in tests
// and on error pages. If an upgrade moves the context, tests/ui/link.test.tsx fails.
import { AppRouterContext } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { type ComponentProps, useContext, useTransition } from 'react';

/**
 * A link to another page of the dashboard, which the router opens without loading the document again. It replaces
 * `next/link`, which adds 3 kB to the first load of every page. The page shows a progress bar until the next one is there.
 *
 * Failure: without a router the browser follows the link.
 *
 * @param props.href path of this server, without `BASE_PATH`
 * @param props.prefetch loads the page ahead while the pointer is over the link; true by default
 */
export function Link({
  href,
  prefetch = true,
  ...props
}: Omit<ComponentProps<'a'>, 'href'> & { href: string; prefetch?: boolean }) {
  const router = useContext(AppRouterContext);
  const [isPending, startTransition] = useTransition();
  return (
    <a
      data-pending={isPending || undefined}
      onPointerEnter={() => prefetch && router?.prefetch(href)}
      {...props}
      href={withBasePath(href)}
      onClick={(event) => {
        props.onClick?.(event);
        const isModified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
        if (router === null || event.defaultPrevented || isModified) return;
        event.preventDefault();
        startTransition(() => router.push(href));
      }}
    />
  );
}
