// @vitest-environment happy-dom

import type { CredentialList, CredentialSummary } from '@interlude/protocol/access';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AccessPage } from '@/components/settings/access-page';
import { NowProvider } from '@/components/ui/clock';
import { aCredential } from './credential';
import { layOut, settle } from './laid-out';

const NOW = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const TOKEN = `ilt_${'t'.repeat(43)}`;

/** The server's credentials. */
let credentials: CredentialSummary[];
let sent: { method: string; path: string; body: unknown }[];
let answer: (method: string, body: Record<string, unknown>) => Response;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
  layOut();
  credentials = [];
  sent = [];
  vi.stubGlobal('fetch', async (url: string, init: RequestInit = {}) => {
    const { method = 'GET' } = init;
    if (method === 'GET') return Response.json({ credentials, hasMore: false });
    const body = init.body === undefined ? {} : JSON.parse(String(init.body));
    sent.push({ method, path: url, body });
    return answer(method, body);
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function open(): Promise<void> {
  const initial: CredentialList = { credentials, hasMore: false };
  await act(async () =>
    render(
      <NowProvider renderedAt={NOW}>
        <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
          <AccessPage initial={initial} ownId="own" />
        </QueryClientProvider>
      </NowProvider>,
    ),
  );
}
const button = (name: string | RegExp) => screen.getByRole('button', { name });
const press = (name: string | RegExp) =>
  act(async () => {
    fireEvent.click(button(name));
    await vi.advanceTimersByTimeAsync(50);
  });
/** The accessible name of a field includes its hint. */
const field = (label: string) => screen.getByLabelText(new RegExp(`^${label}`));
const enter = (label: string, value: string) => fireEvent.change(field(label), { target: { value } });
const tokens = () => screen.queryByRole('table', { name: 'Tokens' })?.textContent ?? '';

it('creates a token, shows it once with the focus, and lists it', async () => {
  answer = (_, body) => {
    const made = aCredential({ name: String(body.name), expiresAt: Number(body.expiresAt) });
    credentials = [made];
    return Response.json({ token: TOKEN, credential: made });
  };
  await open();
  await press('Create a token');
  enter('Role', 'viewer');
  enter('Name', 'The wall');
  enter('Expires', '30');
  await press('Create token');
  expect(sent).toEqual([
    {
      method: 'POST',
      path: '/api/v1/tokens',
      body: { role: 'viewer', name: 'The wall', expiresAt: expect.any(Number) },
    },
  ]);
  const notice = screen.getByRole('region', { name: 'The new token' });
  expect(document.activeElement).toBe(notice);
  expect(notice.querySelector('code')?.textContent).toBe(TOKEN);
  await press('I have it');
  expect(document.body.innerHTML).not.toContain(TOKEN);
  expect(tokens()).toMatch(/The wall.*Viewer.*everything.*in 30 days/);
});

it('shows why the server refused a token, and creates the corrected one', async () => {
  answer = (_, { agentPrefix }) =>
    agentPrefix === ''
      ? Response.json({ error: { code: 'bad_request', message: 'agentPrefix is empty.' } }, { status: 400 })
      : Response.json({ token: TOKEN, credential: aCredential({ role: 'runner' }) });
  await open();
  await press('Create a token');
  enter('Reaches', 'prefix');
  enter('Agent id prefix', '  ');
  await press('Create token');
  expect(screen.getByRole('form', { name: 'New token' }).querySelector('[role=alert]')?.textContent).toBe(
    'agentPrefix is empty.',
  );
  enter('Agent id prefix', 'ci-');
  await press('Create token');
  expect(sent.map(({ body }) => body)).toEqual([
    { role: 'runner', agentPrefix: '' },
    { role: 'runner', agentPrefix: 'ci-' },
  ]);
  expect(screen.getByRole('region', { name: 'The new token' }).textContent).toContain('--token-file runner.token');
});

it('closes the form on Escape, and returns the focus to its button', async () => {
  await open();
  await press('Create a token');
  expect(document.activeElement).toBe(field('Role'));
  await act(async () => {
    fireEvent.keyDown(field('Role'), { key: 'Escape' });
    await vi.advanceTimersByTimeAsync(50);
  });
  expect(screen.queryByRole('form', { name: 'New token' })).toBeNull();
  expect(document.activeElement).toBe(button('Create a token'));
});

it('revokes a token on a deliberate second press', async () => {
  credentials = [aCredential()];
  answer = () => {
    credentials = [aCredential({ revokedAt: NOW })];
    return Response.json({});
  };
  await open();
  await act(settle);
  await press('Revoke “The wall”');
  const sure = 'Revoke “The wall”: sure?';
  expect(button(sure).getAttribute('aria-disabled')).toBe('true');
  await press(sure);
  expect(sent).toEqual([]);
  await act(settle);
  await press(sure);
  expect(sent).toEqual([{ method: 'DELETE', path: '/api/v1/credentials/wall', body: {} }]);
  expect(tokens()).toBe('');
  screen.getByText('1 revoked token');
  expect(screen.getByRole('table', { name: 'Revoked tokens', hidden: true }).textContent).toContain('The wall');
});

it('drops an expired token, and offers to end every other sign-in', async () => {
  credentials = [
    aCredential({ expiresAt: NOW + 2 * MINUTE_MS }),
    aCredential({ id: 'own', kind: 'session', name: 'Local admin', idleUntil: NOW + 5 * 60 * MINUTE_MS }),
    aCredential({ id: 'other', kind: 'session', name: 'Lena', idleUntil: NOW + 5 * 60 * MINUTE_MS }),
  ];
  await open();
  expect(tokens()).toContain('in 2 min');
  const signIns = within(screen.getByRole('table', { name: 'Sign-ins' }));
  expect(signIns.getAllByRole('button').map((one) => one.getAttribute('aria-label'))).toEqual([
    'End the sign-in of “Lena”',
  ]);
  await act(() => vi.advanceTimersByTimeAsync(3 * MINUTE_MS));
  expect(tokens()).toBe('');
});
