// Validates an OpenRPC document from stdin against the official meta-schemas, with ajv.
//
// The meta-schema of OpenRPC 1.4 is in `@open-rpc/spec`. `@open-rpc/meta-schema` ends at 1.3.2, and 1.4
// extends it: the document is also validated against that one, with its version replaced.

import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import Ajv from 'ajv';
import { check, run } from './check.mjs';

const require = createRequire(import.meta.url);

/** What is wrong with the document, by this meta-schema. */
function faults(metaSchema, document) {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  const schemas = require('@json-schema-tools/meta-schema/schema.json');
  delete schemas.$schema;
  ajv.addSchema(schemas, 'https://meta.json-schema.tools');
  const { $schema, ...schema } = metaSchema;
  const validate = ajv.compile(schema);
  return validate(document) ? [] : validate.errors.map((e) => `${e.instancePath} ${e.message}`);
}

run(async () => {
  const document = JSON.parse(await text(process.stdin));
  check('it says 1.4', document.openrpc.startsWith('1.4.'), true);
  check('it has methods', document.methods.length > 0, true);
  check('1.4 of @open-rpc/spec', faults(require('@open-rpc/spec/1_4/schema.json'), document), []);
  const { openrpcDocument } = require('@open-rpc/meta-schema');
  check('@open-rpc/meta-schema', faults(openrpcDocument, { ...document, openrpc: '1.3.2' }), []);
  const broken = { ...document, methods: [{ ...document.methods[0], params: [{ schema: 1 }] }] };
  check('a broken one is found', faults(openrpcDocument, broken).length > 0, true);
  const shapeless = structuredClone(document);
  shapeless.components = { schemas: { Broken: { type: 'no such type' } } };
  check('a broken schema is found', faults(openrpcDocument, shapeless).length > 0, true);
});
