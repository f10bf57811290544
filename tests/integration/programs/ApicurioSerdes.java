import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaDeserializer;
import io.apicurio.registry.serde.jsonschema.JsonSchemaKafkaSerializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaDeserializer;
import io.apicurio.registry.serde.protobuf.ProtobufKafkaSerializer;
import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import java.util.StringJoiner;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Serializes and deserializes with Apicurio's own classes, a line of standard input at a time.
 *
 * <p>Arguments are "avro", "protobuf" or "json", "write" or "read", the topic, the schema, and
 * settings as name=value. A Protobuf schema is a FileDescriptorProto, and its last message is the
 * one of the rows; the registry has the schema of JSON. A line is a row without framing, or a value; the headers of written values follow. Digits
 * are hexadecimal.
 */
public class ApicurioSerdes {
  private static final HexFormat HEX = HexFormat.of();

  /** A format, without a framing. */
  private interface Format<T> {
    T decoded(byte[] row) throws Exception;

    byte[] encoded(T row) throws Exception;
  }

  private record Avro(Schema schema) implements Format<GenericRecord> {
    @Override
    public GenericRecord decoded(byte[] row) throws Exception {
      GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
      return reader.read(null, DecoderFactory.get().binaryDecoder(row, null));
    }

    @Override
    public byte[] encoded(GenericRecord row) throws Exception {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
      new GenericDatumWriter<GenericRecord>(row.getSchema()).write(row, encoder);
      encoder.flush();
      return out.toByteArray();
    }
  }

  private record Protobuf(Descriptor message) implements Format<DynamicMessage> {
    static Protobuf of(byte[] descriptor) throws Exception {
      FileDescriptorProto proto = FileDescriptorProto.parseFrom(descriptor);
      FileDescriptor file = FileDescriptor.buildFrom(proto, new FileDescriptor[0]);
      return new Protobuf(file.getMessageTypes().get(file.getMessageTypes().size() - 1));
    }

    @Override
    public DynamicMessage decoded(byte[] row) throws Exception {
      return DynamicMessage.parseFrom(message, row);
    }

    @Override
    public byte[] encoded(DynamicMessage row) {
      return row.toByteArray();
    }
  }

  private record Json(ObjectMapper mapper) implements Format<JsonNode> {
    @Override
    public JsonNode decoded(byte[] row) throws Exception {
      return mapper.readTree(row);
    }

    @Override
    public byte[] encoded(JsonNode row) throws Exception {
      return mapper.writeValueAsBytes(row);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> settings = new HashMap<>();
    for (String setting : Arrays.asList(arguments).subList(4, arguments.length)) {
      String[] parts = setting.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    boolean writes = arguments[1].equals("write");
    if (arguments[0].equals("avro")) {
      Avro format = new Avro(new Schema.Parser().parse(arguments[3]));
      run(
          format, new AvroKafkaSerializer<>(), new AvroKafkaDeserializer<>(), settings,
          writes, arguments[2]);
    } else if (arguments[0].equals("json")) {
      run(
          new Json(new ObjectMapper()),
          new JsonSchemaKafkaSerializer<>(), new JsonSchemaKafkaDeserializer<>(), settings,
          writes, arguments[2]);
    } else {
      run(
          Protobuf.of(HEX.parseHex(arguments[3])),
          new ProtobufKafkaSerializer<>(), new ProtobufKafkaDeserializer<>(), settings,
          writes, arguments[2]);
    }
  }

  private static <T> void run(
      Format<T> format,
      Serializer<T> serializer,
      Deserializer<T> deserializer,
      Map<String, Object> settings,
      boolean writes,
      String topic)
      throws Exception {
    Scanner lines = new Scanner(System.in);
    try (serializer; deserializer) {
      serializer.configure(settings, false);
      deserializer.configure(settings, false);
      while (lines.hasNextLine()) {
        byte[] line = HEX.parseHex(lines.nextLine());
        if (writes) {
          System.out.println(written(serializer, topic, format.decoded(line)));
        } else {
          T row = deserializer.deserialize(topic, line);
          System.out.println(HEX.formatHex(format.encoded(row)));
        }
      }
    }
  }

  private static <T> String written(Serializer<T> serializer, String topic, T row) {
    RecordHeaders headers = new RecordHeaders();
    StringJoiner parts = new StringJoiner(" ");
    parts.add(HEX.formatHex(serializer.serialize(topic, headers, row)));
    for (Header header : headers) {
      parts.add(header.key() + "=" + HEX.formatHex(header.value()));
    }
    return parts.toString();
  }
}
