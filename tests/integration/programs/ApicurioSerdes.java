import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
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

/**
 * Serializes and deserializes Avro with Apicurio's own classes, a line of standard input at a time.
 *
 * <p>Arguments are "write" or "read", the topic, the schema, and settings as name=value. A line is a
 * row as Avro's bytes, or a value; the headers of written values follow. Digits are hexadecimal.
 */
public class ApicurioSerdes {
  private static final HexFormat HEX = HexFormat.of();

  public static void main(String[] arguments) throws Exception {
    Map<String, Object> settings = new HashMap<>();
    for (String setting : Arrays.asList(arguments).subList(3, arguments.length)) {
      String[] parts = setting.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
    boolean writes = arguments[0].equals("write");
    Schema schema = new Schema.Parser().parse(arguments[2]);
    Scanner lines = new Scanner(System.in);
    try (AvroKafkaSerializer<GenericRecord> serializer = new AvroKafkaSerializer<>();
        AvroKafkaDeserializer<GenericRecord> deserializer = new AvroKafkaDeserializer<>()) {
      serializer.configure(settings, false);
      deserializer.configure(settings, false);
      while (lines.hasNextLine()) {
        String line = lines.nextLine();
        if (writes) {
          System.out.println(written(serializer, arguments[1], decoded(schema, HEX.parseHex(line))));
        } else {
          System.out.println(encoded(deserializer.deserialize(arguments[1], HEX.parseHex(line))));
        }
      }
    }
  }

  private static String written(
      AvroKafkaSerializer<GenericRecord> serializer, String topic, GenericRecord row) {
    RecordHeaders headers = new RecordHeaders();
    StringJoiner parts = new StringJoiner(" ");
    parts.add(HEX.formatHex(serializer.serialize(topic, headers, row)));
    for (Header header : headers) {
      parts.add(header.key() + "=" + HEX.formatHex(header.value()));
    }
    return parts.toString();
  }

  private static GenericRecord decoded(Schema schema, byte[] datum) throws Exception {
    GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(schema);
    return reader.read(null, DecoderFactory.get().binaryDecoder(datum, null));
  }

  private static String encoded(GenericRecord row) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
    new GenericDatumWriter<GenericRecord>(row.getSchema()).write(row, encoder);
    encoder.flush();
    return HEX.formatHex(out.toByteArray());
  }
}
