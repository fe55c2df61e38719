import { newTokenSchema } from '@interlude/protocol/access';
import { EVERYTHING } from '@interlude/protocol/scope';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { isTrouble, SignedOutReason, SignInOptions } from '@/app/signed-out/sign-in-ways';
import { filterIn, paramsOf } from '@/components/settings/audit-filter';
import { scopeInWords } from '@/components/settings/role-labels';
import { EMPTY_TOKEN, ROLE_SCOPES, TOKEN_ROLES, tokenCommands, tokenRequest } from '@/components/settings/token-form';
import { remainingTime, spanInWords } from '@/components/settings/until';
import { MessageView } from '@/components/transcript/message-view';
import { NowProvider } from '@/components/ui/clock';
import type { SignInFailure } from '@/lib/server/access/sign-in';
import { aMessage } from './rows';

const words = (page: React.ReactNode) => renderToStaticMarkup(page).replace(/<[^>]*>/g, '');
const agents = (ids: string[], prefixes: string[] = []) => ({ kind: 'agents', ids, prefixes }) as const;

describe('the page to sign in', () => {
  it('explains why the sign-in ended or failed', () => {
    expect(words(<SignedOutReason reason="ended" />)).toMatch(/signed out.*an admin signed you out/);
    expect(words(<SignedOutReason reason="old-link" />)).toContain(
      'It was already used, is older than five minutes, or was created by a sign-in that has ended. Get a new one below.',
    );
    expect(words(<SignedOutReason reason={null} />)).toBe('');
    expect(['ended', 'toString', undefined, ['ended']].map(isTrouble)).toEqual([true, false, false, false]);
  });

  it('offers the provider first, keeps the target page, and folds the local sign-in unless it failed', () => {
    const page = (reason: SignInFailure | null) =>
      renderToStaticMarkup(<SignInOptions next="/inbox?a=1&b=2" reason={reason} provider="id.example" />);
    expect(page(null)).toContain('href="/sign-in/provider?next=%2Finbox%3Fa%3D1%26b%3D2"');
    expect(page(null)).toContain('Sign in with id.example');
    for (const reason of [null, 'ended'] as const) expect(page(reason)).toMatch(/<details(?! open)/);
    expect(page('wrong-token')).toMatch(/<details open.*role="alert"/);
    expect(page('old-link')).toMatch(/<details open.*npx interlude sign-in/);
  });

  it('offers no provider if none is set', () => {
    const page = renderToStaticMarkup(<SignInOptions next="/" reason={null} provider={null} />);
    expect(page).not.toContain('details');
    expect(page).toContain('action="/sign-in"');
  });
});

describe('a new token', () => {
  it('makes a valid request for every role and scope', () => {
    for (const { role } of TOKEN_ROLES) {
      for (const reach of ROLE_SCOPES[role]) {
        const request = tokenRequest({ ...EMPTY_TOKEN, role, reach, agent: ' ci-1 ', expiry: '30' }, 1_000);
        expect(newTokenSchema.safeParse(request).success).toBe(true);
        expect(request).toMatchObject({ role, expiresAt: 1_000 + 30 * 86_400_000 });
        expect([request.agent, request.agentPrefix]).toEqual([
          reach === 'agent' ? 'ci-1' : undefined,
          reach === 'prefix' ? 'ci-1' : undefined,
        ]);
      }
    }
    expect(tokenRequest({ ...EMPTY_TOKEN, agent: 'a' }, 1_000)).toEqual({ role: 'runner', agent: 'a' });
  });

  it('appears in none of the commands', () => {
    const [keep, run] = tokenCommands({ role: 'runner', scope: agents(["it's 8"]) }, 'http://127.0.0.1:4319');
    expect(keep?.command).toBe('install -m 600 /dev/stdin it-s-8.token');
    expect(run?.command).toBe(
      "npx interlude runner claude --agent 'it'\\''s 8' \\\n  --url http://127.0.0.1:4319 \\\n  --token-file it-s-8.token",
    );
    const [, ask] = tokenCommands({ role: 'viewer', scope: EVERYTHING }, 'http://127.0.0.1:4319');
    expect(ask?.command).toMatch(/^\(printf .*cat viewer\.token\) \| curl -H @- http:.*\/api\/v1\/sessions$/);
  });
});

describe('in words', () => {
  it('describes a credential’s scope', () => {
    expect(scopeInWords(EVERYTHING, 'viewer')).toBe('everything');
    expect(scopeInWords(EVERYTHING, 'runner')).toBe('every agent');
    expect(scopeInWords(agents(['a'], ['ci-']), 'runner')).toBe('agent a, and agents with ids starting with ci-');
    expect(scopeInWords({ kind: 'session', sessionId: 's' }, 'viewer')).toBe('session s');
    expect(scopeInWords({ kind: 'log', agentId: 'a' }, 'viewer')).toBe('the log of a');
  });

  it('describes when it ends', () => {
    expect([-5, 900, 240_000, 5 * 3_600_000, 30 * 86_400_000 - 1].map(remainingTime)).toEqual([
      ...['in 0 s', 'in 1 s', 'in 4 min', 'in 5 h', 'in 30 days'],
    ]);
    expect([3_600_000, 8 * 3_600_000, 7 * 86_400_000].map(spanInWords)).toEqual(['an hour', '8 hours', '7 days']);
  });
});

it('restores the audit filter, and nothing else, from the address', () => {
  const filter = filterIn(new URLSearchParams('actor=Lena&result=done&before=3'));
  expect(paramsOf(filter).toString()).toBe('actor=Lena&result=done');
});

it('labels a message from elsewhere as from the terminal', () => {
  const view = (fields: Parameters<typeof aMessage>[0]) =>
    words(
      <NowProvider renderedAt={2_000}>
        <MessageView item={aMessage({ role: 'user', text: 'Hi', ...fields })} queued={false} answers="" />
      </NowProvider>,
    );
  // below the text, so that it doesn't push it
  expect(view({ delivery: null })).toMatch(/Hi.*from the terminal/);
  expect(view({ delivery: 'seen' })).not.toContain('from the terminal');
  expect(view({ role: 'assistant', delivery: null })).not.toContain('from the terminal');
});
