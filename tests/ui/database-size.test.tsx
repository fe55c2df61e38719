// @vitest-environment happy-dom

import type { Storage } from '@interlude/protocol/storage';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DatabaseSize } from '@/components/settings/storage';
import { NowProvider } from '@/components/ui/clock';

const MB = 1_000_000;
const NOW = Date.UTC(2026, 0, 1, 12);

const storage = (fields: Partial<Storage> = {}) =>
  ({
    at: NOW,
    bytes: 10 * MB,
    freeBytes: 1 * MB,
    method: 'measured',
    parts: [
      { name: 'events', bytes: 6 * MB, tables: [{ name: 'events', bytes: 6 * MB, indexBytes: 2 * MB }] },
      { name: 'logs', bytes: 3 * MB, tables: [] },
    ],
    ...fields,
  }) as Storage;

let response: () => Response;
beforeEach(() => {
  response = () => Response.json(storage());
  vi.stubGlobal('fetch', async () => response());
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = (initial: Storage | null) =>
  render(
    <NowProvider renderedAt={NOW}>
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 1e6 } } })}>
        <DatabaseSize initial={initial} />
      </QueryClientProvider>
    </NowProvider>,
  );
const rows = () => screen.getAllByRole('row').map(({ textContent }) => textContent);
const lookAgain = () => act(async () => fireEvent.click(screen.getByRole('button', { name: 'Refresh' })));

it('lists parts and free space that add up to the total', () => {
  open(storage());
  screen.getByText('10.0 MB in total');
  expect(rows()).toHaveLength(4);
  expect(rows()[1]).toMatch(/^Events.*indexes 2.0 MB.*60 %.*6.0 MB/);
  expect(rows().at(-1)).toMatch(/^Free.*10 %.*1.0 MB/);
  expect(screen.getByRole('status').textContent).toMatch(/^Updated [^;]+$/);
});

it('loads the sizes after the page if they came too late', async () => {
  open(null);
  expect(screen.getByRole('status').textContent).toBe('Measuring…');
  await screen.findByText('10.0 MB in total');
});

it('marks estimated sizes, and keeps them if a refresh fails', async () => {
  open(storage({ method: 'estimated' }));
  expect(screen.getByRole('status').textContent).toContain('estimated from samples');
  expect(rows()[1]).toContain('about 6.0 MB');
  response = () => Response.json({ error: { code: 'unavailable', message: 'Try again later.' } }, { status: 503 });
  await lookAgain();
  await waitFor(() => expect(screen.getByRole('alert').textContent).toBe('Try again later.'));
  expect(rows()).toHaveLength(4);
  response = () => Response.json(storage({ bytes: 20 * MB }));
  await lookAgain();
  await screen.findByText('20.0 MB in total');
});
