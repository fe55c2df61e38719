'use client';

import type { CredentialSummary } from '@interlude/protocol/access';
import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { Ago } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { Words } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import { EndCredential } from './end-credential';
import { FactTable } from './fact-table';
import { ROLE_WORD } from './role-words';
import { Until } from './until';

const WIDTHS = '@3xl:grid-cols-[minmax(0,3fr)_minmax(0,1.4fr)_minmax(0,2.6fr)_88px_72px_72px_96px]';

/** People who are signed in, each of their browsers. */
export function SignInList(props: {
  signIns: readonly CredentialSummary[];
  ownId: string;
  onEnd: () => Promise<unknown>;
}) {
  const { signIns, ownId, onEnd } = props;
  return (
    <FactTable
      label="Sign-ins"
      rows={signIns}
      widths={WIDTHS}
      columns={[
        {
          name: 'Who',
          cell: ({ name }) => (
            <bdi>
              <Words text={name} />
            </bdi>
          ),
        },
        { name: 'Role', cell: ({ role }) => ROLE_WORD[role] },
        {
          name: 'How',
          cell: ({ id, memberId }) =>
            `${memberId === null ? 'on this machine' : 'with the provider'}${id === ownId ? ', this browser' : ''}`,
        },
        { name: 'Since', before: 'since', cell: ({ createdAt }) => <Moment at={createdAt} /> },
        { name: 'Last used', before: 'used', cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
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
                className="inline-block min-h-6 text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
              >
                You
              </a>
            ) : (
              <EndCredential id={id} name={`the sign-in of ${quoted(name)}`} word="End" onEnd={onEnd} />
            ),
        },
      ]}
    />
  );
}
