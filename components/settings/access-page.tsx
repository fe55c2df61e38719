'use client';

import type { CredentialList, NewToken } from '@interlude/protocol/access';
import { useState } from 'react';
import { EmbedList } from './embed-list';
import { NewTokenNotice } from './new-token-notice';
import { Section } from './section';
import { SignInList } from './sign-in-list';
import { TokenForm } from './token-form';
import { TokenList } from './token-list';
import { useCredentials } from './use-credentials';

/** What lets people and programs in, and the way to end each. */
export function AccessPage({ initial, ownId }: { initial: CredentialList; ownId: string }) {
  const { all, live, hasMore, error, lookAgain } = useCredentials(initial);
  const [made, setMade] = useState<NewToken | null>(null);
  const tokens = live.filter(({ kind }) => kind === 'token');
  const ended = all.filter(({ kind, revokedAt }) => kind === 'token' && revokedAt !== null);
  const signIns = live.filter(({ kind }) => kind === 'session');
  const embeds = live.filter(({ kind }) => kind === 'embed');
  return (
    <div className="space-y-10">
      {error !== null && (
        <p role="alert" className="text-failed text-xs">
          This may be old: it could not be looked up again. {error.message}
        </p>
      )}
      <Section
        title="Tokens"
        count={tokens.length}
        about="For runners and other programs. A revoked one stops working everywhere within two seconds."
      >
        {made !== null ? (
          <NewTokenNotice made={made} onClose={() => setMade(null)} />
        ) : (
          <TokenForm
            onMade={(token) => {
              setMade(token);
              void lookAgain();
            }}
          />
        )}
        {tokens.length === 0 && <p className="text-ink-3 text-xs">No program has a token.</p>}
        <TokenList tokens={tokens} ended={ended} onEnd={lookAgain} />
      </Section>
      <Section title="Sign-ins" count={signIns.length} about="Who is signed in, browser by browser.">
        <SignInList signIns={signIns} ownId={ownId} onEnd={lookAgain} />
      </Section>
      <Section
        title="Embeds"
        count={embeds.length}
        about="What other people’s pages show in a frame now. Each ends by itself after 15 minutes at most, unless its console asks for another."
      >
        {embeds.length === 0 ? (
          <p className="max-w-prose text-pretty text-ink-3 text-xs">
            Nothing is embedded at the moment. To show a session, a log or all sessions in a page of your own, create a
            token with the role Issuer for its backend; <code className="text-ink-2">docs/embedding.md</code> has the
            steps.
          </p>
        ) : (
          <EmbedList embeds={embeds} all={all} onEnd={lookAgain} />
        )}
      </Section>
      {hasMore && <p className="text-ink-3 text-xs">There are more: the newest 200 of each kind are listed.</p>}
    </div>
  );
}
