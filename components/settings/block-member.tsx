'use client';

import { PressTwice } from '@/components/ui/press-twice';
import { nameText } from '@/components/ui/verbatim';
import type { MemberSummary } from '@/lib/protocol/access';
import { useAct } from './use-act';

/** Keeps somebody out, whatever the provider says, and ends all that they are signed in with; or lets them in again. */
export function BlockMember({
  member,
  onChange,
}: {
  member: MemberSummary;
  onChange: (blocked: boolean) => Promise<unknown>;
}) {
  const { isSending, failure, act } = useAct();
  const name = nameText(member.name);
  const isBlocked = member.blockedAt !== null;
  const word = isBlocked ? 'Unblock' : 'Block';
  return (
    <>
      <PressTwice
        of={`${member.id} ${isBlocked}`}
        onPress={() => void act(() => onChange(!isBlocked))}
        disabled={isSending}
        label={(isPressed) => (isPressed ? `${word} ${name}: sure?` : `${word} ${name}`)}
        className="min-h-6 whitespace-nowrap underline-offset-2"
        looks={['text-ink-2 decoration-line-strong hover:text-failed', 'font-medium text-failed']}
      >
        {(isPressed) => (isPressed ? `${word}, sure?` : word)}
      </PressTwice>
      <span role="alert" className="block text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}
