'use client';

import type { CredentialSummary } from '@interlude/protocol/access';
import { Ago } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Words } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { EndCredential } from './end-credential';
import { type Column, FactTable } from './fact-table';
import { ROLE_WORD } from './role-words';
import { scopeInWords } from './scope-words';
import { Until } from './until';

const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,1.4fr)_minmax(0,2.6fr)_88px_72px_72px_96px]';

/** The tokens of programs: those that are good, and those that were. */
export function TokenList(props: {
  tokens: readonly CredentialSummary[];
  ended: readonly CredentialSummary[];
  onEnd: () => Promise<unknown>;
}) {
  const { tokens, ended, onEnd } = props;
  const columns: Column<CredentialSummary>[] = [
    ...FACTS,
    {
      name: 'Expires',
      before: 'expires',
      cell: ({ expiresAt }) => (expiresAt === null ? 'never' : <Until at={expiresAt} />),
    },
    {
      name: 'Revoke',
      cell: ({ id, name }) => <EndCredential id={id} name={quoted(name)} word="Revoke" onEnd={onEnd} />,
      className: 'text-right',
    },
  ];
  return (
    <>
      {tokens.length > 0 && <FactTable label="Tokens" rows={tokens} columns={columns} widths={WIDTHS} />}
      {ended.length > 0 && (
        <details className="mt-3">
          <summary className="w-fit text-ink-3 text-xs hover:text-ink">{plural(ended.length, 'revoked token')}</summary>
          <div className="mt-1 text-ink-3">
            <FactTable label="Revoked tokens" rows={ended} columns={[...FACTS, REVOKED]} widths={WIDTHS} />
          </div>
        </details>
      )}
    </>
  );
}

const FACTS: Column<CredentialSummary>[] = [
  {
    name: 'Name',
    cell: ({ name }) => (
      <bdi>
        <Words text={name} />
      </bdi>
    ),
  },
  { name: 'Role', cell: ({ role }) => ROLE_WORD[role] },
  { name: 'Reaches', cell: ({ scope, role }) => <Words text={scopeInWords(scope, role)} /> },
  { name: 'Created', before: 'created', cell: ({ createdAt }) => <Moment at={createdAt} /> },
  {
    name: 'Last used',
    before: 'used',
    // it is written down as used when it is made
    cell: ({ createdAt, lastUsedAt }) => (lastUsedAt <= createdAt ? 'never' : <Ago at={lastUsedAt} />),
  },
];

const REVOKED: Column<CredentialSummary> = {
  name: 'Revoked',
  cell: ({ revokedAt }) => revokedAt !== null && <Moment at={revokedAt} />,
};
