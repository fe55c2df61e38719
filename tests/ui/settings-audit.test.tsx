// @vitest-environment happy-dom

import type { AuditCheck, AuditEntry, AuditRemoved, AuditPage as Page } from '@interlude/protocol/access';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AuditPage } from '@/components/settings/audit-page';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';

const NOW = Date.UTC(2026, 0, 1, 12);
const ACTIONS = ['create token', 'revoke credential'];

function anEntry(number: number, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    number,
    at: NOW,
    actor: 'Local admin',
    actorKind: 'human',
    role: 'admin',
    credentialId: 'own',
    action: 'create token',
    agentId: null,
    sessionId: null,
    target: '/api/v1/tokens',
    digest: '',
    origin: '',
    result: 'done',
    times: 1,
    hash: `hash-${number}`,
    ...fields,
  };
}

let entries: AuditEntry[];
let removed: AuditRemoved | null;
let check: AuditCheck;
/** Queries of the requested pages. */
let asked: string[];

beforeEach(() => {
  history.replaceState(null, '', '/settings/audit');
  entries = [anEntry(3), anEntry(2, { action: 'revoke credential' }), anEntry(1)];
  removed = null;
  check = { entries: 3, head: 'hash-3', brokenAt: null, removed: null };
  asked = [];
  vi.stubGlobal('fetch', async (url: string) => {
    if (url.endsWith('/audit/check')) return Response.json(check);
    const { search, searchParams } = new URL(url, 'http://interlude.test');
    asked.push(search);
    return Response.json(pageOf(searchParams));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function pageOf(filter: URLSearchParams): Page {
  const [actor, action] = [filter.get('actor'), filter.get('action')];
  const found = entries.filter(
    (entry) => (actor === null || entry.actor === actor) && (action === null || entry.action === action),
  );
  return { entries: found, removed, next: null };
}

function open(search = ''): void {
  history.replaceState(null, '', `/settings/audit?${search}`);
  const first = { query: search, page: pageOf(new URLSearchParams(search)) };
  render(
    <NextPage>
      <NowProvider renderedAt={NOW}>
        <QueryClientProvider
          client={new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: 1e6 } } })}
        >
          <AuditPage first={first} actions={ACTIONS} />
        </QueryClientProvider>
      </NowProvider>
    </NextPage>,
  );
}
const rows = () => document.querySelectorAll('ol[aria-label="Entries"] > li');
const enter = (label: string, value: string) =>
  act(async () => fireEvent.change(screen.getByLabelText(label), { target: { value } }));
const press = (name: string) => act(async () => fireEvent.click(screen.getByRole('button', { name })));
const exportPath = () => screen.getByRole('link', { name: /^Export/ }).getAttribute('href');

it('filters by action, also in address and export', async () => {
  open();
  expect(rows()).toHaveLength(3);
  expect(exportPath()).toBe('/api/v1/audit/export');
  await enter('Action', 'revoke credential');
  await waitFor(() => expect(rows()).toHaveLength(1));
  expect(rows()[0]?.textContent).toMatch(/Local admin.*revoke credential.*done/);
  expect(asked).toEqual(['?action=revoke+credential&limit=50']);
  expect(location.search).toBe('?action=revoke+credential');
  expect(exportPath()).toBe('/api/v1/audit/export?action=revoke+credential');
});

it('starts with the filter in its address, and clears it without losing the focus', async () => {
  open('action=revoke+credential');
  expect(rows()).toHaveLength(1);
  await press('Show all');
  await waitFor(() => expect(rows()).toHaveLength(3));
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Refresh' }));
  expect(location.search).toBe('');
});

it('filters by an entry’s actor', async () => {
  entries.push(anEntry(0, { actor: 'Lena' }));
  open();
  await act(async () =>
    fireEvent.click(
      screen.getAllByRole('button', { name: 'Show only this person or program', hidden: true })[0] as HTMLElement,
    ),
  );
  await waitFor(() => expect(rows()).toHaveLength(3));
  expect(asked).toEqual(['?actor=Local+admin&limit=50']);
});

it('shows that nothing matches, and if older entries were removed', async () => {
  open();
  await enter('Who', 'Nobody');
  await screen.findByText(/^No entries match/);
  cleanup();
  removed = { upTo: 12, hash: 'hash-12', at: NOW };
  open();
  expect(document.body.textContent).toContain(
    'Retention removed the entries up to number 12, most recently on 1 Jan 2026.',
  );
  await enter('Who', 'Nobody');
  await screen.findByText(/^No remaining entries match/);
});

it.each<[string, Partial<AuditCheck>, RegExp]>([
  ['an intact chain', {}, /The chain is intact.*has 3 entries.*number 3.*hash-3/],
  [
    'a chain whose oldest entries were removed',
    { removed: { upTo: 12, hash: 'hash-12', at: NOW } },
    /number 15.*It starts at number 13: retention removed older entries, most recently on 1 Jan 2026/,
  ],
  ['a broken chain', { brokenAt: 2, entries: 1 }, /The chain breaks at entry 2/],
])('reports %s', async (_what, outcome, words) => {
  check = { ...check, ...outcome };
  open();
  await press('Verify the log');
  await screen.findByText(/^The chain/);
  expect(document.body.textContent).toMatch(words);
});
