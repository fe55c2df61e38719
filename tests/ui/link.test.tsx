// @vitest-environment happy-dom
import { act, cleanup, createEvent, fireEvent, render, screen } from '@testing-library/react';
import type { AppRouterInstance } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { AppRouterContext } from 'next/dist/shared/lib/app-router-context.shared-runtime';
import { Suspense, use, useState } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { Link } from '@/components/ui/link';

afterEach(cleanup);

/** @returns the link in a page with a router, and the router's calls */
function shown(props: Partial<Parameters<typeof Link>[0]> = {}) {
  const [push, prefetch] = [vi.fn(), vi.fn()];
  const router = { push, prefetch } as unknown as AppRouterInstance;
  render(
    <AppRouterContext value={router}>
      <Link href="/inbox" {...props}>
        Inbox
      </Link>
    </AppRouterContext>,
  );
  return { link: screen.getByRole('link', { name: 'Inbox' }), push, prefetch };
}

/** @returns true if the browser follows the link by itself */
function click(link: HTMLElement, init: MouseEventInit = {}): boolean {
  const event = createEvent.click(link, init);
  fireEvent(link, event);
  return !event.defaultPrevented;
}

it('passes a plain click to the router and a modified one to the browser', () => {
  const { link, push } = shown();
  expect(click(link)).toBe(false);
  expect(push.mock.calls).toEqual([['/inbox']]);
  for (const key of ['metaKey', 'ctrlKey', 'shiftKey', 'altKey'])
    expect([key, click(link, { [key]: true })]).toEqual([key, true]);
  expect(push).toHaveBeenCalledOnce();
});

/** @param props.next the page that the link opens */
function App({ first, next }: { first: Promise<string>; next: Promise<string> }) {
  const [page, setPage] = useState(first);
  const router = { push: () => setPage(next) } as unknown as AppRouterInstance;
  return (
    <AppRouterContext value={router}>
      <Link href="/inbox">Open</Link> <p>{use(page)}</p>
    </AppRouterContext>
  );
}

it('is pending until the next page is there', async () => {
  let arrive: (text: string) => void = () => undefined;
  const next = new Promise<string>((resolve) => {
    arrive = resolve;
  });
  const state = () => [
    screen.getByRole('link').hasAttribute('data-pending'),
    screen.getByRole('paragraph').textContent,
  ];
  await act(async () => {
    render(
      <Suspense>
        <App first={Promise.resolve('Sessions')} next={next} />
      </Suspense>,
    );
  });
  expect(state()).toEqual([false, 'Sessions']);
  await act(async () => void click(screen.getByRole('link')));
  expect(state()).toEqual([true, 'Sessions']);
  await act(async () => arrive('Inbox'));
  expect(state()).toEqual([false, 'Inbox']);
});

it('does nothing when its own handler prevents the click', () => {
  const { link, push } = shown({ onClick: (event) => event.preventDefault() });
  click(link);
  expect(push).not.toHaveBeenCalled();
});

it.each([
  [undefined, 1],
  [false, 0],
])('prefetches under the pointer unless prefetch is false (%s)', (prefetch, times) => {
  const { link, prefetch: prefetched } = shown(prefetch === undefined ? {} : { prefetch });
  fireEvent.pointerEnter(link);
  expect(prefetched).toHaveBeenCalledTimes(times);
});

it('lets the browser navigate without a router', () => {
  render(<Link href="/inbox">Inbox</Link>);
  expect(click(screen.getByRole('link'))).toBe(true);
});
