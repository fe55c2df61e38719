import { inProcessServer } from '../support/server-target';
import { describeMessagesContract } from './messages-contract';

describeMessagesContract('in this process', inProcessServer);
