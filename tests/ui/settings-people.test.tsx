// @vitest-environment happy-dom

import type { CredentialSummary, Me, MemberSummary, OwnSignIns } from '@interlude/protocol/access';
import { EVERYTHING, type Role } from '@interlude/protocol/scope';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MembersPage } from '@/components/settings/members-page';
import { SettingsNav } from '@/components/settings/settings-nav';
import { YouPage } from '@/components/settings/you-page';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { aCredential } from './credential';
import { layOut, settle } from './laid-out';

const NOW = Date.UTC(2026, 0, 1);
const HOUR_MS = 60 * 60_000;

const me = (role: Role): Me => ({
  id: 'me',
  name: 'Tom',
  kind: 'human',
  role,
  scope: EVERYTHING,
  credentialId: 'here',
  expiresAt: null,
  parentOrigin: null,
  redacts: false,
});

const aSignIn = (id: string): CredentialSummary =>
  aCredential({ id, kind: 'session', name: 'Tom', role: 'admin', idleUntil: NOW + 8 * HOUR_MS });

const aMember = (fields: Partial<MemberSummary> = {}): MemberSummary => ({
  id: 'tom',
  name: 'Tom',
  email: null,
  issuer: 'https://id.example',
  role: 'viewer',
  groupRole: 'viewer',
  givenRole: null,
  createdAt: NOW,
  lastSignInAt: NOW,
  blockedAt: null,
  signInCount: 1,
  ...fields,
});

let sent: [method: string, path: string, body?: unknown][];
/** Responses to reads and to writes. */
let read: unknown;
let answer: (body: Record<string, unknown>) => Response;

beforeEach(() => {
  history.replaceState(null, '', '/settings');
  vi.useFakeTimers({ now: NOW });
  layOut();
  sent = [];
  vi.stubGlobal('fetch', async (url: string, { method = 'GET', body }: RequestInit = {}) => {
    if (method === 'GET') return Response.json(read);
    const given = body === undefined ? undefined : (JSON.parse(String(body)) as Record<string, unknown>);
    sent.push(given === undefined ? [method, url] : [method, url, given]);
    return answer(given ?? {});
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const open = (page: ReactNode) =>
  act(async () =>
    render(
      <NextPage>
        <NowProvider renderedAt={NOW}>
          <QueryClientProvider client={new QueryClient()}>{page}</QueryClientProvider>
        </NowProvider>
      </NextPage>,
    ),
  );
const press = (name: string | RegExp) =>
  act(async () => {
    fireEvent.click(screen.getByRole('button', { name }));
    await vi.advanceTimersByTimeAsync(50);
  });

it('signs out every other browser on a second press, and keeps this one', async () => {
  read = { signIns: [aSignIn('here'), aSignIn('there')] };
  answer = () => Response.json({ signIns: [aSignIn('here')] });
  await open(<YouPage me={me('admin')} initial={{ signIns: [aSignIn('here'), aSignIn('there')] }} hint="" />);
  screen.getByText(/Ends after 8 hours without use\./);
  await act(settle);
  await press('Sign out everywhere else');
  await act(settle);
  await press('End 1 sign-in?');
  expect(sent).toEqual([['DELETE', '/api/v1/me/sign-ins']]);
  screen.getByText('You aren’t signed in anywhere else.');
});

it('shows when a sign-in ends, idle and at the latest', async () => {
  const [HOUR, DAY] = [3_600_000, 24 * 3_600_000];
  const textFor = async (times: Partial<CredentialSummary>) => {
    read = { signIns: [{ ...aSignIn('here'), createdAt: NOW, lastUsedAt: NOW, ...times }] };
    await open(<YouPage me={me('admin')} initial={read as OwnSignIns} hint="" />);
    const text = screen.getByText(/Signed in since/).textContent;
    cleanup();
    return text;
  };
  const idleUntil = NOW + 7 * DAY;
  expect(await textFor({ idleUntil, expiresAt: NOW + 12 * HOUR })).toMatch(/\. Ends in 12 h\.$/);
  expect(await textFor({ idleUntil, expiresAt: NOW + 30 * DAY })).toMatch(
    /\. Ends after 7 days without use, or in 30 days\.$/,
  );
});

it('shows a viewer’s permissions and the admins to ask', async () => {
  read = { signIns: [] };
  await open(<YouPage me={me('viewer')} initial={{ signIns: [] }} hint="To change your role, ask an admin: Lena." />);
  expect(document.body.textContent).toContain(
    'Viewer: can read everything but change nothing. To change your role, ask an admin: Lena.',
  );
  // The tabs link to the other pages.
  expect(screen.queryByRole('link')).toBeNull();
});

const PERSONAL = ['You', 'Appearance', 'Notifications', 'Shortcuts'];
it.each([
  [true, [...PERSONAL, 'Access', 'Members', 'Storage', 'Audit', 'API', 'Webhook']],
  [false, [...PERSONAL, 'API', 'Webhook']],
])('links only to allowed pages (admin: %s)', async (isAdmin, places) => {
  history.replaceState(null, '', '/settings/api');
  await open(<SettingsNav isAdmin={isAdmin} />);
  const links = screen.getAllByRole('link');
  expect(links.map(({ textContent }) => textContent)).toEqual(places);
  const here = links.filter((link) => link.getAttribute('aria-current') === 'page');
  expect(here.map(({ textContent }) => textContent)).toEqual(['API']);
});

it('changes a member’s role, or shows the old one and the server’s reason', async () => {
  read = { members: [aMember()], hasMore: false };
  answer = ({ role }) =>
    role === 'admin'
      ? Response.json({ error: { code: 'conflict', message: 'The last admin stays.' } }, { status: 409 })
      : Response.json({ member: aMember({ role: 'operator', givenRole: 'operator' }) });
  await open(<MembersPage initial={{ members: [aMember()], hasMore: false }} ownId="me" provider="id.example" />);
  const role = screen.getByRole<HTMLSelectElement>('combobox', { name: 'Role of “Tom”' });
  const pick = (value: string) =>
    act(async () => {
      fireEvent.change(role, { target: { value } });
      await vi.advanceTimersByTimeAsync(50);
    });
  await pick('operator');
  expect(role.value).toBe('operator');
  await pick('admin');
  expect(role.value).toBe('operator');
  screen.getByText('The last admin stays.');
  expect(sent).toEqual([
    ['PUT', '/api/v1/members/tom', { role: 'operator' }],
    ['PUT', '/api/v1/members/tom', { role: 'admin' }],
  ]);
});

it('blocks a member on a second press, and then offers to unblock', async () => {
  read = { members: [aMember()], hasMore: false };
  answer = ({ blocked }) => Response.json({ member: aMember({ blockedAt: blocked ? NOW : null, signInCount: 0 }) });
  await open(<MembersPage initial={{ members: [aMember()], hasMore: false }} ownId="me" provider="id.example" />);
  await act(settle);
  await press('Block “Tom”');
  expect(sent).toEqual([]);
  await act(settle);
  await press('Block “Tom”: sure?');
  expect(sent).toEqual([['PUT', '/api/v1/members/tom', { blocked: true }]]);
  screen.getByText(/^blocked since/);
  screen.getByRole('button', { name: 'Unblock “Tom”' });
});
