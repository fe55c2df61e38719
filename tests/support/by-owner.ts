import { OWNER } from '@/lib/server/access/principal';
import { PLAIN_DIGESTS } from '@/lib/server/access/shown-digests';

/** Of a request as its handler gets it: that the owner sends it. */
export const byOwner = { principal: OWNER, digests: PLAIN_DIGESTS, whenOver: () => () => {} };
