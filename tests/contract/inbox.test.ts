import { inProcessServer } from '../support/server-target';
import { describeInboxContract } from './inbox-contract';

describeInboxContract('in this process', inProcessServer);
