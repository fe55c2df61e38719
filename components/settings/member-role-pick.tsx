'use client';

import type { MemberSummary } from '@interlude/protocol/access';
import { MEMBER_ROLES, type MemberRole } from '@interlude/protocol/scope';
import { quoted } from '@/components/ui/verbatim';
import { ROLE_WORD } from './role-words';
import { useAct } from './use-act';

/** What a member may: as their groups say, or as an admin says. */
export function MemberRolePick(props: {
  member: MemberSummary;
  onChange: (role: MemberRole | null) => Promise<unknown>;
}) {
  const { member, onChange } = props;
  const { isSending, failure, act } = useAct();
  return (
    <>
      <select
        aria-label={`Role of ${quoted(member.name)}`}
        value={member.givenRole ?? ''}
        disabled={isSending}
        onChange={({ target }) => void act(() => onChange(target.value === '' ? null : (target.value as MemberRole)))}
        className="h-7 @max-3xl:mt-1 max-w-full rounded-md border border-line bg-ground px-1.5 text-ink hover:border-line-strong"
      >
        <option value="">{ROLE_WORD[member.groupRole]}, by their groups</option>
        {MEMBER_ROLES.map((role) => (
          <option key={role} value={role}>
            {ROLE_WORD[role]}, given here
          </option>
        ))}
      </select>
      <span role="alert" className="block max-w-[40ch] text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}
