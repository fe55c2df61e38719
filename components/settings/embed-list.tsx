'use client';

import type { CredentialSummary } from '@interlude/protocol/access';
import { Ago } from '@/components/ui/clock';
import { Words } from '@/components/ui/name';
import { EndCredential } from './end-credential';
import { FactTable } from './fact-table';
import { ROLE_WORD } from './role-words';
import { scopeInWords } from './scope-words';
import { Until } from './until';

const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,1.4fr)_minmax(0,2.6fr)_88px_72px_72px_96px]';

/** What is shown in other people's pages now. */
export function EmbedList(props: {
  embeds: readonly CredentialSummary[];
  all: readonly CredentialSummary[];
  onEnd: () => Promise<unknown>;
}) {
  const { embeds, all, onEnd } = props;
  const nameOf = (id: string | null) => all.find((one) => one.id === id)?.name ?? 'the server’s own token';
  return (
    <FactTable
      label="Embeds"
      rows={embeds}
      widths={WIDTHS}
      columns={[
        {
          name: 'Shows',
          cell: ({ scope, role }) => <Words text={scopeInWords(scope, role)} />,
        },
        { name: 'Role', cell: ({ role }) => ROLE_WORD[role] },
        { name: 'In pages of', before: 'in', cell: ({ parentOrigin }) => <Words text={parentOrigin ?? 'nobody'} /> },
        { name: 'Made by', before: 'by', cell: ({ parentId }) => <Words text={nameOf(parentId)} /> },
        {
          name: 'Last used',
          before: 'used',
          cell: ({ createdAt, lastUsedAt }) => (lastUsedAt <= createdAt ? 'never' : <Ago at={lastUsedAt} />),
        },
        { name: 'Ends', before: 'ends', cell: ({ expiresAt }) => expiresAt !== null && <Until at={expiresAt} /> },
        {
          name: 'End',
          className: 'text-right',
          cell: ({ id, scope, role }) => (
            <EndCredential id={id} name={`the embed of ${scopeInWords(scope, role)}`} word="End" onEnd={onEnd} />
          ),
        },
      ]}
    />
  );
}
