import { newEmbedSchema } from '@interlude/protocol/access';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { redactedRoles } from '@/lib/server/access/access-settings';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { postEmbedToken } from '@/lib/server/access/embeds';
import { OWNER } from '@/lib/server/access/principal';
import { PLAIN_DIGESTS } from '@/lib/server/access/shown-digests';
import { type TestDatabase, temporaryDatabase } from '../../support/database';

const CONSOLE = 'https://console.example';

describe('who is told no secrets', () => {
  it('is set by role, for viewers and operators', () => {
    expect(redactedRoles({})).toEqual([]);
    expect(redactedRoles({ INTERLUDE_REDACT_ROLES: ' Viewer,operator, ' })).toEqual(['viewer', 'operator']);
  });

  it('is never left open by a role that is written wrong', () => {
    for (const INTERLUDE_REDACT_ROLES of ['viewers', 'admin', 'viewer operator']) {
      expect(() => redactedRoles({ INTERLUDE_REDACT_ROLES })).toThrow('INTERLUDE_REDACT_ROLES contains');
    }
  });

  describe('in an embed', () => {
    let database: TestDatabase;
    let credentials: CredentialCache;
    beforeEach(async () => {
      database = await temporaryDatabase();
      credentials = new CredentialCache({ database, now: Date.now });
    });
    afterEach(async () => {
      credentials.close();
      await database.dispose();
    });

    async function principalOf(asked: object) {
      const body = newEmbedSchema.parse({ fleet: true, parentOrigin: CONSOLE, ...asked });
      const { token } = await postEmbedToken(
        {
          body,
          principal: OWNER,
          ids: {},
          request: new Request(CONSOLE),
          digests: PLAIN_DIGESTS,
          whenOver: () => () => {},
        },
        { database, now: Date.now, credentials, embedOrigins: [CONSOLE] },
      );
      return credentials.find(token);
    }

    it('is whoever looks, unless the console asks for all of it', async () => {
      expect(await principalOf({})).toMatchObject({ kind: 'embed', redacts: true });
      expect(await principalOf({ redact: true })).toMatchObject({ redacts: true });
      expect(await principalOf({ redact: false })).toMatchObject({ redacts: false });
    });
  });
});
