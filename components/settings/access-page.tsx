'use client';

import type { CredentialList, CredentialSummary, NewToken } from '@interlude/protocol/access';
import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { useState } from 'react';
import { deleteJson, fetchJson } from '@/components/live/fetch-json';
import { List, ListEnd } from '@/components/live/list';
import { useList } from '@/components/live/use-list';
import { Ago, useServerNow } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Phrase, Words } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { ConfirmAction } from './confirm-action';
import { type Column, FactTable, Section } from './fact-table';
import { ROLE_WORD, scopeInWords } from './role-labels';
import { NewTokenNotice, TokenForm } from './token-form';
import { Until } from './until';

const REFRESH_MS = 5_000;
const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,1.4fr)_minmax(0,2.6fr)_88px_72px_72px_96px]';

/** Tokens, sign-ins and embeds, each with a button to end it. */
export function AccessPage({ initial, ownId }: { initial: CredentialList; ownId: string }) {
  const {
    list: { credentials, hasMore } = initial,
    first: { refetch },
    ...state
  } = useList<CredentialList>({
    key: ['access', 'credentials'],
    read: (_, signal) => fetchJson('/credentials', signal),
    initialData: initial,
    refetchInterval: REFRESH_MS,
    refetchOnMount: 'always',
  });
  const [made, setMade] = useState<NewToken | null>(null);
  const minute = useServerNow((now) => Math.floor(now / 60_000));
  const live = credentials.filter((one) => isLive(one, minute * 60_000));
  const [tokens, signIns, embeds] = (['token', 'session', 'embed'] as const).map((kind) =>
    live.filter((one) => one.kind === kind),
  ) as [CredentialSummary[], CredentialSummary[], CredentialSummary[]];
  const revoked = credentials.filter(({ kind, revokedAt }) => kind === 'token' && revokedAt !== null);
  const nameOf = (id: string | null) => credentials.find((one) => one.id === id)?.name ?? 'the server’s own token';
  const end = (id: string, name: string, word = 'End') => (
    <ConfirmAction
      of={id}
      word={word}
      name={name}
      onConfirm={async () => {
        await deleteJson(`/credentials/${encodeURIComponent(id)}`);
        await refetch();
      }}
    />
  );
  return (
    <div className="space-y-10">
      {state.error !== null && <ListEnd state={state} listed={live.length} what="credentials" className="" />}
      <Section
        id="tokens"
        title="Tokens"
        count={tokens.length}
        about="For runners and other programs. A revoked token stops working everywhere within two seconds."
      >
        {made !== null ? (
          <NewTokenNotice made={made} onClose={() => setMade(null)} />
        ) : (
          <TokenForm
            onMade={(token) => {
              setMade(token);
              void refetch();
            }}
          />
        )}
        <List
          rows={tokens}
          empty={<p className="text-ink-3 text-xs">No tokens yet. Those you create above appear here.</p>}
        >
          {() => (
            <FactTable
              label="Tokens"
              rows={tokens}
              widths={WIDTHS}
              columns={[
                ...TOKEN_FACTS,
                {
                  name: 'Expires',
                  before: 'expires',
                  cell: ({ expiresAt }) => (expiresAt === null ? 'never' : <Until at={expiresAt} />),
                },
                { name: 'Revoke', className: 'text-right', cell: ({ id, name }) => end(id, quoted(name), 'Revoke') },
              ]}
            />
          )}
        </List>
        {revoked.length > 0 && (
          <details className="mt-3">
            <summary className="w-fit text-ink-3 text-xs hover:text-ink">
              {plural(revoked.length, 'revoked token')}
            </summary>
            <div className="mt-1 text-ink-3">
              <FactTable
                label="Revoked tokens"
                rows={revoked}
                widths={WIDTHS}
                columns={[
                  ...TOKEN_FACTS,
                  { name: 'Revoked', cell: ({ revokedAt }) => revokedAt !== null && <Moment at={revokedAt} /> },
                ]}
              />
            </div>
          </details>
        )}
      </Section>
      <Section
        id="sign-ins"
        title="Sign-ins"
        count={signIns.length}
        about="People who are signed in, one row per browser."
      >
        <FactTable
          label="Sign-ins"
          rows={signIns}
          widths={WIDTHS}
          columns={[
            { name: 'Who', cell: CredentialName },
            ROLE,
            {
              name: 'How',
              cell: ({ id, memberId }) =>
                `${memberId === null ? 'on this machine' : 'with the provider'}${id === ownId ? ', this browser' : ''}`,
            },
            { name: 'Since', before: 'since', cell: ({ createdAt }) => <Moment at={createdAt} /> },
            { name: 'Last used', before: 'used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} inWords /> },
            {
              name: 'Ends',
              before: 'ends',
              cell: ({ idleUntil, expiresAt }) => {
                const ends = [idleUntil, expiresAt].filter((at) => at !== null);
                return ends.length > 0 && <Until at={Math.min(...ends)} />;
              },
            },
            {
              name: 'End',
              className: 'text-right',
              cell: ({ id, name }) =>
                id === ownId ? (
                  <a
                    href={withBasePath('/settings')}
                    className="inline-block min-h-6 min-w-6 pointer-coarse:min-w-11 pointer-coarse:leading-[44px] text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
                  >
                    You
                  </a>
                ) : (
                  end(id, `the sign-in of ${quoted(name)}`)
                ),
            },
          ]}
        />
      </Section>
      <Section
        id="embeds"
        title="Embeds"
        count={embeds.length}
        about="Frames on other sites. Each ends after 15 minutes unless the site renews its token."
      >
        <List
          rows={embeds}
          empty={
            <p className="max-w-prose text-pretty text-ink-3 text-xs">
              No embeds right now. To show a session, a log or all sessions on your own site, create a token with the
              Issuer role for its backend. See <code className="text-ink-2">docs/embedding.md</code> for the steps.
            </p>
          }
        >
          {() => (
            <FactTable
              label="Embeds"
              rows={embeds}
              widths={WIDTHS}
              columns={[
                { name: 'Shows', cell: ({ scope, role }) => <Phrase text={scopeInWords(scope, role)} /> },
                ROLE,
                {
                  name: 'On pages from',
                  before: 'in',
                  cell: ({ parentOrigin }) => <Phrase text={parentOrigin ?? 'no page'} />,
                },
                { name: 'Created by', before: 'by', cell: ({ parentId }) => <Phrase text={nameOf(parentId)} /> },
                LAST_USED,
                {
                  name: 'Ends',
                  before: 'ends',
                  cell: ({ expiresAt }) => expiresAt !== null && <Until at={expiresAt} />,
                },
                {
                  name: 'End',
                  className: 'text-right',
                  cell: ({ id, scope, role }) => end(id, `the embed of ${scopeInWords(scope, role)}`),
                },
              ]}
            />
          )}
        </List>
      </Section>
      {hasMore && <p className="text-ink-3 text-xs">Only the newest 200 of each kind are listed.</p>}
    </div>
  );
}

function isLive({ revokedAt, expiresAt, idleUntil }: CredentialSummary, now: number): boolean {
  return revokedAt === null && (expiresAt ?? Number.POSITIVE_INFINITY) > now && (idleUntil ?? now + 1) > now;
}

function CredentialName({ name }: CredentialSummary) {
  return (
    <bdi>
      <Words text={name} />
    </bdi>
  );
}

const ROLE: Column<CredentialSummary> = { name: 'Role', cell: ({ role }) => ROLE_WORD[role] };

const LAST_USED: Column<CredentialSummary> = {
  name: 'Last used',
  before: 'used',
  // The server records creation as the first use.
  cell: ({ createdAt, lastUsedAt }) => (lastUsedAt <= createdAt ? 'never' : <Ago at={lastUsedAt} inWords />),
};

const TOKEN_FACTS: Column<CredentialSummary>[] = [
  { name: 'Name', cell: CredentialName },
  ROLE,
  { name: 'Reaches', cell: ({ scope, role }) => <Phrase text={scopeInWords(scope, role)} /> },
  { name: 'Created', before: 'created', cell: ({ createdAt }) => <Moment at={createdAt} /> },
  LAST_USED,
];
