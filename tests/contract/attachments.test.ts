import { inProcessServer } from '../support/server-target';
import { describeAttachmentsContract } from './attachments-contract';

describeAttachmentsContract('in this process', inProcessServer);
